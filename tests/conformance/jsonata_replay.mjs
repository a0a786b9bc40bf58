// {"text", "bindings"} a line -> {"value"}, {"error"} or {} for nothing.
import { createInterface } from "node:readline";
import jsonata from "jsonata";

const parsed = new Map();
function parse(text) {
  if (!parsed.has(text)) parsed.set(text, jsonata(text));
  return parsed.get(text);
}

for await (const line of createInterface({ input: process.stdin })) {
  const { text, bindings } = JSON.parse(line);
  let answer;
  try {
    // AWS has $parse besides what JSONata has.
    const value = await parse(text).evaluate(undefined, { ...bindings, parse: JSON.parse });
    answer = value === undefined ? {} : { value };
  } catch (error) {
    answer = { error: error.code ?? String(error) };
  }
  console.log(JSON.stringify(answer));
}
