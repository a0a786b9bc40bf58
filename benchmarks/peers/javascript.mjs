// aws-local-stepfunctions, JSONPath alone: `node javascript.mjs PATH_OF_ITS_MODULE`. Keeps no history.
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";

const { StateMachine } = await import(process.argv[2]);
const machines = new Map();

function machineOf(definition) {
  if (!machines.has(definition)) {
    machines.set(definition, new StateMachine(JSON.parse(definition)));
  }
  return machines.get(definition);
}

async function round({ definition, input, expected, transitions, seconds }) {
  if (JSON.parse(definition).QueryLanguage === "JSONata") throw new Error("knows no JSONata");
  const machine = machineOf(definition);
  const found = await machine.run(input).result;
  if (!isDeepStrictEqual(found, expected)) throw new Error("gave another output");
  const begin = process.cpuUsage();
  const until = performance.now() + seconds * 1_000;
  let executions = 0;
  while (performance.now() < until) {
    await machine.run(input).result;
    executions += 1;
  }
  const spent = process.cpuUsage(begin);
  return (spent.user + spent.system) / 1_000 / executions / transitions;
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = { cpu_ms: await round(JSON.parse(line)) };
  } catch (error) {
    answer = { refused: String(error).slice(0, 120) };
  }
  console.log(JSON.stringify(answer));
}
