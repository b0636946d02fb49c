// An agent in Node: reads its assignment, asks a person, writes an output, returns a result.
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const read = async () => JSON.parse((await lines.next()).value);
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

let calls = 0;
async function call(message) {
  const id = ++calls;
  say({ ...message, id });
  const answer = await read(); // one call at a time, so the next line is its answer
  if (answer.type === "error") throw new Error(answer.message);
  return answer.value;
}

const assignment = await read();
const { words = [] } = assignment.inputs;

say({ type: "emitted", text: `counting ${words.length} words\n` });
const style = await call({ type: "asked", question: "Which style?", choices: ["plain", "loud"] });
const counted = Object.fromEntries(words.map((word) => [word, word.length]));
const text = style === "loud" ? JSON.stringify(counted).toUpperCase() : JSON.stringify(counted);
const path = await call({ type: "wrote", path: "words.json", content: text });

say({ type: "result", output: { counted, path }, confidence: 1 });
process.stdin.destroy();
