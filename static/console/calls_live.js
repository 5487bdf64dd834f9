// A live list, of calls or of questions: rows that changed arrive over a socket, or by polling where sockets fail.
// The rows are the server's; what it sends is filtered by the address of the page.
(() => {
  const bar = document.querySelector("[data-calls-live]");
  if (!bar) return;
  const MOST_ROWS = 50; // as many as a page has
  const FEW = 5; // more at once are announced, so that the list does not jump
  const POLL_MS = 3000;
  const POLLS = 10; // until a socket is tried again
  const DEAD_MS = 60000; // the server says something every 25 seconds
  const NO_ACCESS = 4403;
  const KEY = bar.dataset.row || "call"; // what a row is of
  const BY_ID = "byId" in bar.dataset; // sorted by ids, which begin with the time: a change moves no row

  const toggle = bar.querySelector("[data-live-state]");
  const word = toggle.querySelector("span:last-child");
  const more = document.querySelector("[data-live-new]");
  const body = document.querySelector("[data-calls] tbody");
  const isFirst = "first" in bar.dataset;
  const query = bar.dataset.query ? `${bar.dataset.query}&` : "";
  let cursor = bar.dataset.cursor;
  let socket = null;
  let heard = 0;
  let failures = 0;
  let polls = 0;
  let paused = false;
  let isGap = false; // too much has changed to insert it: the page has to be loaded again
  let way = "connecting";
  const arrived = new Map(); // new calls that are not shown yet, the newest last
  const held = new Map(); // rows that changed while they had the focus

  const WORDS = {
    connecting: "Connecting…", live: "Live", polling: "Live", lost: "Reconnecting…", over: "Ended: reload",
  };
  const say = (next = way) => {
    way = next;
    const state = paused && way !== "over" ? "paused" : way;
    toggle.dataset.liveState = state;
    toggle.setAttribute("aria-pressed", String(paused));
    word.textContent = paused && way !== "over" ? "Paused" : WORDS[way];
    toggle.title = way === "polling" ? "Asked for every few seconds: no socket could be opened." : "";
  };

  // --- rows
  const rowOf = (html) => {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    return holder.content.querySelector("tr");
  };
  const dress = (row) => {
    row.classList.add("c-fresh");
    document.dispatchEvent(new CustomEvent("console:added", { detail: row }));
  };
  const shown = (call) => body && body.querySelector(`tr[data-${KEY}="${CSS.escape(call)}"]`);
  const isNew = (call) => !BY_ID || !body || !body.rows.length || call > body.rows[0].dataset[KEY];
  const isBusy = (part) => {
    const selection = getSelection();
    return part.contains(document.activeElement)
      || (!selection.isCollapsed && part.contains(selection.anchorNode));
  };
  const put = (old, row) => {
    if (isBusy(old)) { held.set(old.dataset[KEY], row); return; }
    held.delete(old.dataset[KEY]);
    old.replaceWith(row);
    dress(row);
  };
  const isCalm = () => !paused && !isGap && body && isFirst && !isBusy(body)
    && body.getBoundingClientRect().top >= 0;

  const insert = () => {
    const rows = [...arrived.values()];
    arrived.clear();
    rows.forEach((row) => { body.prepend(row); dress(row); });
    [...body.rows].slice(MOST_ROWS).forEach((row) => { if (!isBusy(row)) row.remove(); });
  };
  const announce = () => {
    const count = arrived.size;
    more.hidden = !(count || isGap);
    more.textContent = isGap ? `Many new ${KEY}s` : `${count} new ${KEY}${count === 1 ? "" : "s"}`;
  };
  const settle = () => {
    // A list that was empty has no table yet: the page is loaded with it, unless a filter is being set.
    if (arrived.size && !body && isFirst && !paused && !document.querySelector("[data-pill][open]")) {
      location.reload();
      return;
    }
    if (arrived.size && arrived.size <= FEW && more.hidden && isCalm()) insert();
    announce();
  };
  const take = (message) => {
    cursor = message.cursor;
    if (message.stale || message.skipped) isGap = true;
    const rows = message.rows || [];
    rows.reverse().forEach(({ [KEY]: call, html }) => {
      const old = shown(call);
      const row = rowOf(html);
      if (old) { put(old, row); return; }
      if (!isNew(call)) return;
      arrived.delete(call);
      arrived.set(call, row);
    });
    (message.gone || []).forEach((call) => {
      arrived.delete(call);
      const old = shown(call);
      if (old) { old.classList.add("c-gone"); old.title = "No longer matches the filters."; }
    });
    while (arrived.size > MOST_ROWS) { isGap = true; arrived.delete(arrived.keys().next().value); }
    settle();
  };

  more.addEventListener("click", () => {
    if (isGap || !body || !isFirst) {
      location.assign(location.pathname + (bar.dataset.query ? `?${bar.dataset.query}` : ""));
      return;
    }
    insert();
    announce();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    window.scrollTo({ top: 0, behavior: still ? "auto" : "smooth" });
  });
  toggle.addEventListener("click", () => {
    if (way === "over") { location.reload(); return; }
    paused = !paused;
    say();
    if (!paused && !isGap && body && isFirst && arrived.size) insert();
    announce();
  });
  if (body) body.addEventListener("focusout", () => setTimeout(() => {
    [...held].forEach(([call, row]) => { const old = shown(call); if (old) put(old, row); });
  }));

  // --- how they arrive
  const address = () => `${bar.dataset.url}?${query}cursor=${encodeURIComponent(cursor)}`;
  const wait = () => Math.min(30000, 500 * 2 ** failures) * (0.5 + Math.random());

  const poll = async () => {
    if (document.hidden) { setTimeout(poll, POLL_MS); return; }
    const reply = await fetch(address(), { redirect: "manual" }).catch(() => null);
    if (reply && (reply.type === "opaqueredirect" || reply.status === 403)) { say("over"); return; }
    const message = reply && reply.ok ? await reply.json().catch(() => null) : null;
    if (message) { take(message); polls += 1; say("polling"); } else say("lost");
    if (polls >= POLLS) { polls = 0; open(); } else setTimeout(poll, message ? POLL_MS : wait());
  };
  const lost = (code) => {
    socket = null;
    if (code === NO_ACCESS) { poll(); return; }
    failures += 1;
    if (way !== "polling") say("lost");
    if (failures > 2) poll(); else setTimeout(open, wait());
  };
  function open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const mine = socket = new WebSocket(`${scheme}://${location.host}${address()}`);
    mine.onopen = () => { failures = 0; heard = Date.now(); say("live"); };
    mine.onmessage = (event) => { heard = Date.now(); take(JSON.parse(event.data)); };
    mine.onclose = (event) => { if (mine === socket) lost(event.code); };
  }
  setInterval(() => {
    if (!socket || socket.readyState !== WebSocket.OPEN || Date.now() - heard < DEAD_MS) return;
    const dead = socket;
    lost(0);
    dead.close();
  }, 15000);
  window.addEventListener("pagehide", () => { const mine = socket; socket = null; if (mine) mine.close(); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) open(); });

  // --- the age of what is shown
  const UNITS = [[86400, "day"], [3600, "hour"], [60, "minute"]];
  const aged = (at) => {
    const seconds = (Date.now() - at) / 1000;
    const unit = UNITS.find(([length]) => Math.abs(seconds) >= length);
    if (!unit) return seconds >= 0 ? "just now" : "in a moment";
    // As the server rounds what is left (`nearly`): two days are not one at once.
    const size = Math.abs(seconds) / unit[0];
    const count = seconds < 0 && (unit[1] === "day" || Math.ceil(size) - size < 1 / 24) ? Math.round(size) : Math.floor(size);
    const words = `${count} ${unit[1]}${count === 1 ? "" : "s"}`;
    return seconds >= 0 ? `${words} ago` : `in ${words}`;
  };
  setInterval(() => body && body.querySelectorAll("time").forEach((time) => {
    const at = new Date(time.dateTime);
    if (Math.abs(Date.now() - at) < 604800000) time.firstChild.nodeValue = aged(at);
  }), 20000);
  setInterval(() => body && body.querySelectorAll("[data-due][hidden]").forEach((mark) => {
    mark.hidden = new Date(mark.dataset.due) > Date.now();
  }), 5000);

  bar.hidden = false;
  say();
  open();
})();
