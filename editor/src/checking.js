// The check while a script is typed: one request at a time, and only the newest text counts.
const PAUSE_MS = 600;
const BUSY_MS = 2000;
const LONGEST_MS = 30000;

// `text` returns what to check, `done` gets what was found, or null where it could not be checked.
export const checker = ({ url, token, text, done }) => {
  let timer = 0;
  let running = false;
  let waiting = false;

  const ask = async (code) => {
    const body = new FormData();
    body.set("csrfmiddlewaretoken", token);
    body.set("code", code);
    const signal = AbortSignal.timeout(LONGEST_MS);
    return fetch(url, { method: "POST", body, signal, redirect: "error", headers: { Accept: "application/json" } });
  };

  const run = async () => {
    if (running) { waiting = true; return; }
    running = true;
    waiting = false;
    const code = text();
    let pause = PAUSE_MS;
    try {
      const reply = await ask(code);
      if (reply.status === 429) {
        waiting = true;
        pause = BUSY_MS;
      } else {
        const found = reply.ok ? await reply.json() : null;
        if (text() === code) done(found);
      }
    } catch {
      if (text() === code) done(null);
    } finally {
      running = false;
      if (waiting) later(pause);
    }
  };

  const later = (pause = PAUSE_MS) => {
    clearTimeout(timer);
    timer = setTimeout(run, pause);
  };
  return later;
};
