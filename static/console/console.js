// Small comforts; every page works without them.
(() => {
  const copied = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };

  const copy = async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await copied(button.closest(".c-copy, .c-snippet, .c-id").querySelector("code").textContent);
    const word = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = word; }, 2000);
  };
  document.addEventListener("click", copy);

  // Of the sections of a page, mark the one that is read: the last that begins near the top of the window. At the end of
  // the page several are in view: the one that the address names, or else the last.
  const sections = [...document.querySelectorAll(".c-sections a")]
    .map((link) => ({ link, section: document.querySelector(link.hash) })).filter(({ section }) => section);
  const NEAR_PX = 130;
  const marked = () => {
    const seen = sections.filter(({ section }) => section.checkVisibility());
    const top = ({ section }) => section.getBoundingClientRect().top;
    const isEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 2;
    const named = seen.find((each) => each.link.hash === location.hash && top(each) > 0);
    const above = seen.filter((each) => top(each) < NEAR_PX);
    const { link } = (isEnd && scrollY && (named || seen.at(-1))) || above.at(-1) || seen[0];
    if (link.hasAttribute("aria-current")) return;
    sections.forEach((each) => each.link.removeAttribute("aria-current"));
    link.setAttribute("aria-current", "true");
    const strip = link.parentElement;
    strip.scrollTo({ left: link.offsetLeft - (strip.clientWidth - link.offsetWidth) / 2 });
  };
  if (sections.length) {
    document.addEventListener("scroll", () => requestAnimationFrame(marked), { passive: true });
    marked();
  }

  // A form that comes back with errors: what is typed next is for the first wrong field.
  const wrong = [...document.querySelectorAll(".c-wrong :is(input, select, textarea)")];
  wrong.find((field) => field.offsetParent)?.focus();

  // Beside a relative time in a table or list: the exact one, in the zone of the viewer.
  // The zone is named once, in the head of the column; on a phone, which has no heads, with each time.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const two = (number) => String(number).padStart(2, "0");
  const exact = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `
    + `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  // The head of the column whose value is this time, not of one that mentions a time.
  const headOf = (time) => {
    const cell = time.closest("td:not(.c-brief)");
    const heads = cell?.closest("table").tHead?.rows[0].cells;
    if (heads?.length !== cell?.parentElement.cells.length) return null;
    return cell?.textContent.trimStart().startsWith(time.textContent.trim()) ? heads[cell.cellIndex] : null;
  };
  const timed = (root) => root.querySelectorAll("td time, dd time, .c-waiting-left time").forEach((time) => {
    if (time.querySelector(".c-exact")) return;
    const beside = document.createElement("span");
    beside.className = "c-exact";
    const moment = exact(new Date(time.dateTime));
    const shown = `${time.textContent.trim()} `;
    beside.textContent = moment.startsWith(shown) ? moment.slice(shown.length) : moment;
    const head = headOf(time);
    if (head) head.dataset.timesIn = zone;
    if (head || time.closest("dd")) beside.dataset.timesIn = zone;
    time.append(beside);
  });
  // On a phone the rows of a list are cards, whose cells are labelled like their columns.
  const labelled = (root) => root.querySelectorAll(".c-flush .c-table:not(.c-stacked), .c-as-cards").forEach((table) => {
    const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
    table.classList.add("c-cardlike");
    table.querySelectorAll("tbody tr").forEach((row) => [...row.cells].forEach((cell, number) => {
      if (heads[number]) cell.dataset.label = heads[number];
    }));
  });
  // When figures were read, in the zone of the viewer.
  const clocked = (root) => root.querySelectorAll("time[data-clock]").forEach((time) => {
    const at = new Date(time.dateTime);
    time.title = time.textContent;
    time.textContent = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${zone}`;
  });
  const dressed = (root) => { timed(root); labelled(root); clocked(root); };
  dressed(document);
  document.addEventListener("console:added", (event) => timed(event.detail));

  // Buttons for a selection are there with one: without this script they always are.
  const boxesOf = (part) => [...part.closest("form").querySelectorAll("td input[type=checkbox]")];
  const isChecked = (box) => box.checked;
  const offered = () => {
    document.querySelectorAll("[data-selection]").forEach((buttons) => {
      const none = !boxesOf(buttons).some(isChecked);
      buttons.querySelectorAll("button").forEach((button) => { button.disabled = none; });
    });
    document.querySelectorAll("[data-select-all]").forEach((label) => {
      const boxes = boxesOf(label);
      const count = boxes.filter(isChecked).length;
      const [all] = label.children;
      label.hidden = false;
      all.checked = count > 0 && count === boxes.length;
      all.indeterminate = count > 0 && count < boxes.length;
      label.parentElement.querySelector("[data-selected]").textContent = `${count} of ${boxes.length} selected`;
    });
  };
  document.addEventListener("change", (event) => {
    const label = event.target.closest("[data-select-all]");
    if (label) boxesOf(label).forEach((box) => { box.checked = event.target.checked; });
  });
  document.addEventListener("change", offered);
  window.addEventListener("pageshow", offered);
  ["console:added", "console:refreshed"].forEach((name) => document.addEventListener(name, offered));
  offered();

  // What a trial shows comes into view: on small screens it is far below the button.
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-try]")) document.querySelector(".c-trial").scrollIntoView({ block: "nearest" });
  });

  // A form in the frame of a trial which the server would refuse for its size is not sent: what was typed stays.
  const frame = document.querySelector("iframe[name=trial]");
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  const measured = (event) => {
    const form = event.target;
    const inside = form.ownerDocument;
    const most = Number(inside.body.dataset.mostBytes);
    const body = new URLSearchParams(new FormData(form)).toString().replace(/(%0D)?%0A/g, "%0D%0A");
    inside.getElementById("too-large")?.remove();
    // The button that was pressed is sent too.
    if (!most || body.length + 100 <= most) return;
    event.preventDefault();
    const note = inside.createElement("p");
    Object.assign(note, { id: "too-large", className: "c-error" });
    note.setAttribute("role", "alert");
    note.textContent = `Too large: with the definition of the tool, this form has ${megabytes(body.length)} as it is sent, `
      + `and may have ${megabytes(most)}. Nothing was sent or run. Shorten the arguments.`;
    form.querySelector(".c-buttons").before(note);
    note.scrollIntoView({ block: "nearest" });
  };
  // The frame is as high as its document, so that there is one scroll bar.
  const fitted = () => {
    const { body } = frame.contentDocument ?? {};
    if (body?.childElementCount) frame.style.height = `${Math.ceil(body.getBoundingClientRect().height) + 2}px`;
  };
  const growth = new ResizeObserver(fitted);
  const guarded = () => {
    const inside = frame.contentDocument;
    growth.disconnect();
    if (inside?.body) growth.observe(inside.body);
    inside?.addEventListener("submit", measured);
    // The document in the frame has no scripts of its own.
    inside?.addEventListener("click", copy);
    inside?.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = false; });
  };
  // A trial that waits for its operator ends with its page, and when another one begins in its place. At "submit", since
  // a form may end the session.
  const abandon = () => {
    const inside = frame.contentDocument;
    const { endAt } = inside?.body?.dataset ?? {};
    if (!endAt) return;
    delete inside.body.dataset.endAt;
    const body = new FormData();
    body.set("_end", inside.querySelector("[name=_end]").value);
    body.set("csrfmiddlewaretoken", inside.querySelector("[name=csrfmiddlewaretoken]").value);
    navigator.sendBeacon(endAt, body);
  };
  if (frame) {
    frame.addEventListener("load", guarded);
    guarded();
    window.addEventListener("pagehide", abandon);
    document.addEventListener("submit", (event) => event.defaultPrevented || abandon());
  }

  // A token is shown once: going back to this page, or reloading it, leads to the list.
  const once = document.querySelector("[data-once]");
  if (once) {
    history.replaceState(null, "", once.dataset.once);
    window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  }

  // The live parts of a page are read again every few seconds, or as often as they say, while the page is seen.
  const LIVE_SECONDS = 3;
  const live = [...document.querySelectorAll("[data-live]")];
  const liveMs = 1000 * Math.min(...live.map((part) => Number(part.dataset.live) || LIVE_SECONDS));
  const busy = (part) => part.contains(document.activeElement) || getSelection().toString()
    || part.querySelector(".c-tip:not([hidden])");
  const pause = document.querySelector("[data-live-toggle]");
  const isPaused = () => pause?.getAttribute("aria-pressed") === "true";
  if (pause && live.length) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      const paused = !isPaused();
      pause.setAttribute("aria-pressed", String(paused));
      pause.dataset.liveState = paused ? "paused" : "live";
      pause.lastElementChild.textContent = paused ? "Paused" : "Live";
    });
  }
  const refresh = async () => {
    if (document.hidden || isPaused()) return true;
    const reply = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual" });
    if (reply.status >= 500) return true;
    if (!reply.ok) return false;
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    dressed(page);
    document.querySelectorAll("[data-live]").forEach((part) => {
      const fresh = page.getElementById(part.id);
      if (!fresh || busy(part) || fresh.innerHTML === part.innerHTML) return;
      part.replaceChildren(...fresh.childNodes);
      document.dispatchEvent(new CustomEvent("console:refreshed", { detail: part }));
    });
    return true;
  };
  // Where it is refused or redirected, the sign-in has ended or the page is gone: a reload says which.
  const over = () => {
    const [note, words, again] = ["div", "p", "a"].map((tag) => document.createElement(tag));
    note.className = "c-note c-note-warn";
    note.setAttribute("role", "alert");
    again.href = location.href;
    again.textContent = "Reload it";
    words.append("This page is no longer updated. ", again, " to see why.");
    note.append(words);
    document.querySelector("[data-live]").before(note);
  };
  const follow = async () => {
    if (await refresh().catch(() => true)) setTimeout(follow, liveMs);
    else over();
  };
  if (live.length) setTimeout(follow, liveMs);

  // Suggest what the author of the chosen function wrote.
  const authors = document.getElementById("authors");
  const chosen = document.getElementById("id_function");
  if (authors && chosen) {
    const said = JSON.parse(authors.textContent);
    const field = (name) => document.getElementById(`id_${name}`);
    let suggested = "";
    const suggest = () => {
      const own = said[chosen.value] || { name: "", title: "", description: "" };
      field("title").placeholder = own.title;
      field("description").placeholder = own.description;
      if (field("name").value === suggested) field("name").value = suggested = own.name;
    };
    if (field("name").value) suggested = null;
    chosen.addEventListener("change", suggest);
    suggest();
  }

  // Of the scopes, show those that are of use to the audience.
  const audience = document.getElementById("id_audience");
  if (audience) {
    const scopes = document.querySelectorAll("[data-field=scopes] input");
    const narrow = () => scopes.forEach((box) => {
      box.closest("div").hidden = !box.value.startsWith(`${audience.value}:`);
    });
    audience.addEventListener("change", narrow);
    narrow();
  }
})();
