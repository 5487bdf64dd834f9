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

const logs = [];

// Keep the data of a log message of the call under way.
export function noteLog({ params }) {
  logs.push(params.data);
}

// Call one tool after the other, or read a resource or get a prompt, until nothing more is wanted, and tell
// what came of each.
export async function callWhatIsWanted(call, read, get) {
  for (let wanted = await hear(); wanted !== null; wanted = await hear()) {
    const progress = [];
    logs.length = 0;
    const noteProgress = (step) => {
      progress.push(step.progress);
      if (wanted.watch) tell({ progress: step.progress });
    };
    try {
      const result = wanted.read
        ? await read(wanted.read)
        : wanted.get
          ? await get(wanted.get, wanted.arguments)
          : await call(wanted.call, wanted.arguments, noteProgress);
      tell({ done: { progress, logs, ...result } });
    } catch (error) {
      tell({ raised: `${error.name}: ${error.message}` });
    }
  }
}
