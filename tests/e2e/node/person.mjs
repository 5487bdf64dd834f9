// Somebody at a client: what the client shows is a line of JSON on its output, what is said to it is a
// line of JSON on its input.

import { createInterface } from 'node:readline';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

// The next line; null at the end.
export async function hear() {
  const { value, done } = await lines.next();
  return done ? null : JSON.parse(value);
}

let looking = Promise.resolve();

// What the person answers when shown a question. They are shown one at a time.
export function answer(question) {
  looking = looking.then(() => {
    tell({ asked: question });
    return hear();
  });
  return looking;
}

// Call one tool after the other, until nothing more is wanted, and tell what came of each.
export async function callWhatIsWanted(call) {
  for (let wanted = await hear(); wanted !== null; wanted = await hear()) {
    const progress = [];
    try {
      const result = await call(wanted.call, wanted.arguments, (step) => {
        progress.push(step.progress);
        if (wanted.watch) tell({ progress: step.progress });
      });
      tell({ done: { progress, ...result } });
    } catch (error) {
      tell({ raised: `${error.name}: ${error.message}` });
    }
  }
}
