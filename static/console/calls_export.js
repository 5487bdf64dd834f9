// An export fetches its parts one after another, shows how far it is, and saves the file at the end.
(() => {
  const place = document.querySelector("[data-export]");
  if (!place) return;
  const find = (name) => place.querySelector(`[data-export-${name}]`);
  const bar = place.querySelector("progress");
  const [run, state, stop, again, keep] = ["run", "state", "stop", "again", "keep"].map(find);
  const starts = [...place.querySelectorAll("[data-export-start]")];
  const TYPES = { csv: "text/csv;charset=utf-8", jsonl: "application/jsonl;charset=utf-8" };
  let form = "";
  let texts = [];
  let rows = 0;
  let after = ""; // the row from which a file begins
  let following = ""; // what the next part of a file goes on with
  let cut = ""; // the last line of a file that ends here
  let stopping = null;

  const number = (count) => count.toLocaleString("en");
  const { noun, singular } = place.dataset;
  const many = () => `${number(rows)} ${rows === 1 ? singular : noun}`;
  const save = (lines) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: TYPES[form] }));
    link.download = `${place.dataset.name}.${form}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  const leaving = (event) => event.preventDefault();
  const working = (is) => {
    stopping = is ? new AbortController() : null;
    starts.forEach((button) => { button.disabled = is; });
    stop.hidden = !is;
    bar.hidden = !is;
    if (is) { again.hidden = keep.hidden = true; window.addEventListener("beforeunload", leaving); }
    else window.removeEventListener("beforeunload", leaving);
  };
  const interrupted = (why) => {
    working(false);
    again.hidden = false;
    keep.hidden = !texts.length;
    state.textContent = `${why} ${many()} so far: the export is not complete.`;
  };
  const WHY = {
    403: `You may no longer read these ${noun}.`, 503: "The server is busy.",
  };

  const next = async () => {
    const query = place.dataset.query ? `${place.dataset.query}&` : "";
    const from = following ? `next=${encodeURIComponent(following)}` : `after=${encodeURIComponent(after)}`;
    const reply = await fetch(`part.${form}?${query}${from}`, {
      redirect: "manual", signal: stopping.signal,
    });
    if (reply.type === "opaqueredirect") throw new Error("You are signed out.");
    if (!reply.ok) throw new Error(WHY[reply.status] || `The server answered ${reply.status}.`);
    const part = await reply.json();
    texts.push(part.text);
    ({ rows, cut } = part);
    following = part.next || "";
    if (part.last) after = part.after || "";
    return part;
  };
  const go = async () => {
    run.hidden = false;
    working(true);
    try {
      for (;;) {
        const part = await next();
        const reached = part.at ? `, back to ${new Date(part.at).toLocaleString()}` : "";
        state.textContent = `${many()} so far${reached}.`;
        if (!part.last) continue;
        working(false);
        save(texts);
        state.textContent = part.after
          ? `Saved: ${many()}, the most that a file may have. Its last line says from where to go on.`
          : `Saved: ${many()}, all that match.`;
        again.hidden = !part.after;
        texts = [];
        if (part.after) rows = 0;
        return;
      }
    } catch (error) {
      const said = error.name === "AbortError" ? "Stopped." : error.message;
      interrupted(error instanceof TypeError ? "The server cannot be reached." : said);
    }
  };

  starts.forEach((button) => button.addEventListener("click", () => {
    form = button.dataset.exportStart;
    texts = [];
    rows = 0;
    after = following = cut = "";
    go();
  }));
  stop.addEventListener("click", () => stopping && stopping.abort());
  again.addEventListener("click", go);
  keep.addEventListener("click", () => save([...texts, cut]));
  place.hidden = false;
})();
