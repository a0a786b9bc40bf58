// A definition a line -> the list of what asl-validator has against it.
import { createInterface } from "node:readline";
import validate from "asl-validator";

const check = validate.default ?? validate;
for await (const line of createInterface({ input: process.stdin })) {
  const found = check(JSON.parse(line));
  console.log(JSON.stringify(found.errors.map((error) => `${error["Error code"]}: ${error.Message}`)));
}
