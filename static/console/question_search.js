// A search in questions and answers: its parts are fetched one after another, until the end or until it is stopped.
(() => {
  const form = document.querySelector("[data-text-search]");
  if (!form) return;
  const find = (name) => form.querySelector(`[data-text-search-${name}]`);
  const [start, stop, again, state] = ["start", "stop", "again", "state"].map(find);
  const place = document.querySelector("[data-text-search-matches]");
  const body = place.querySelector("tbody");
  const BUSY_MS = 700; // until a part that was abandoned has ended
  const BUSY_TRIES = 5;
  let words = "";
  let following = ""; // what the next part goes on with
  let stopping = null;

  const number = (count) => count.toLocaleString("en");
  const matches = () => `${number(body.rows.length)} match${body.rows.length === 1 ? "" : "es"}`;
  const working = (is) => {
    stopping = is ? new AbortController() : null;
    start.disabled = is;
    stop.hidden = !is;
    if (is) again.hidden = true;
  };
  // The words in the texts of a row.
  const mark = (text) => {
    const [node] = text.childNodes;
    if (!node || node.nodeType !== Node.TEXT_NODE) return;
    const escaped = words.split(/\s+/).filter(Boolean).map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    text.replaceChildren(...node.data.split(new RegExp(`(${escaped.join("|")})`, "i")).map((part, number) => {
      if (number % 2 === 0) return part;
      const found = document.createElement("mark");
      found.textContent = part;
      return found;
    }));
  };
  const add = (html) => {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const row = holder.content.querySelector("tr");
    row.querySelectorAll(".c-said").forEach(mark);
    body.append(row);
    document.dispatchEvent(new CustomEvent("console:added", { detail: row }));
  };
  const send = async (tries) => {
    const fields = new FormData(form);
    fields.set("words", words);
    fields.set("next", following);
    const reply = await fetch(form.dataset.url, {
      method: "POST", body: fields, redirect: "manual", signal: stopping.signal,
    });
    if (reply.type === "opaqueredirect") throw new Error("You are signed out.");
    if (reply.status === 403) throw new Error("You may no longer read these questions.");
    const part = await reply.json().catch(() => ({ error: `The server answered ${reply.status}.` }));
    if (part.busy && tries > 0) {
      await new Promise((resolve) => { setTimeout(resolve, BUSY_MS); });
      if (stopping.signal.aborted) throw new DOMException("", "AbortError");
      return send(tries - 1);
    }
    if (!reply.ok) throw new Error(part.error);
    return part;
  };
  const go = async () => {
    working(true);
    let progress = "Nothing searched yet.";
    try {
      for (;;) {
        const part = await send(BUSY_TRIES);
        part.rows.forEach(add);
        place.hidden = !body.rows.length;
        following = part.next || "";
        const back = part.at ? ` back to ${new Date(part.at).toLocaleString()}` : "";
        progress = `Searched ${number(part.searched)} question${part.searched === 1 ? "" : "s"}${back}, ${matches()}`;
        state.textContent = `${progress}…`;
        if (part.next) continue;
        const total = document.createElement("b");
        total.textContent = matches();
        state.replaceChildren(total, ` in all ${number(part.searched)} question${part.searched === 1 ? "" : "s"}.`);
        working(false);
        return;
      }
    } catch (error) {
      working(false);
      again.hidden = !following;
      const why = error.name === "AbortError" ? "Stopped." : error.message;
      state.textContent = `${error instanceof TypeError ? "The server cannot be reached." : why} ${progress}`;
    }
  };

  start.disabled = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (stopping) return;
    words = new FormData(form).get("words");
    following = "";
    body.replaceChildren();
    place.hidden = true;
    state.textContent = "Searching…";
    go();
  });
  stop.addEventListener("click", () => stopping && stopping.abort());
  again.addEventListener("click", go);
  window.addEventListener("pagehide", () => stopping && stopping.abort());
})();
