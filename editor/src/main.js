// The editor of a script. The text area stays the field of the form: the editor writes each change into it.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, completionStatus } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { checker } from "./checking.js";
import { sources } from "./completion.js";
import { mark, messages, written } from "./problems.js";
import { theme } from "./theme.js";

const LEAVE_MS = 60000;

// After Escape, Tab leaves the editor, until another key is pressed.
const leaving = EditorView.domEventHandlers({
  keydown(event, view) {
    if (event.key === "Escape") queueMicrotask(() => view.setTabFocusMode(LEAVE_MS));
    return false;
  },
});

// While something is suggested, Tab accepts it, or does nothing if it has appeared just now.
const accept = (view) => acceptCompletion(view) || completionStatus(view.state) === "active";

const extensions = (offered) => [
  lineNumbers(), lintGutter(), history(), pythonLanguage, indentUnit.of("    "), EditorState.tabSize.of(4),
  indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(), highlightActiveLineGutter(),
  highlightSelectionMatches(), search(), autocompletion({ override: sources(offered), icons: false }),
  messages, leaving, theme,
  keymap.of([
    { key: "Tab", run: accept }, ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap,
    ...historyKeymap, ...completionKeymap, ...lintKeymap, indentWithTab,
  ]),
];

// The fields of the search are no fields of the form around the editor.
const own = (view) => view.dom.querySelectorAll(".cm-search :is(input, button)").forEach((node) => {
  node.setAttribute("form", "");
});

const counted = (problems) => {
  if (!problems.length) return "Checked: no problems.";
  const texts = problems.map(({ line, column, message }) => `Line ${line}, column ${column}: ${message}`);
  return `${problems.length === 1 ? "1 problem" : `${problems.length} problems`}. ${texts.join(" ")}`;
};

const start = (box) => {
  const area = box.querySelector("textarea");
  const label = box.querySelector("label");
  const [status, hint, schema] = ["status", "keys", "arguments"].map((name) => box.querySelector(`[data-${name}]`));
  const offered = JSON.parse(document.getElementById(box.dataset.offered).textContent);
  let problems = written(box);

  const say = (text) => { if (status.textContent !== text) status.textContent = text; };
  const found = (result) => {
    if (!result) { say("Not checked: the check is unavailable. The script is checked when it is saved."); return; }
    problems = result.problems;
    mark(view, problems);
    say(counted(problems));
    box.querySelectorAll(".c-error").forEach((node) => node.remove());
    if (result.input_schema) schema.textContent = JSON.stringify(result.input_schema, null, 2);
    schema.closest("details").hidden = !result.input_schema;
  };

  label.id = `${area.id}_label`;
  hint.id = `${area.id}_keys`;
  const describing = [area.getAttribute("aria-describedby"), hint.id].filter(Boolean).join(" ");
  const holder = document.createElement("div");
  area.after(holder);
  const view = new EditorView({
    parent: holder,
    doc: area.value,
    extensions: [
      EditorView.cspNonce.of(box.dataset.nonce),
      EditorView.contentAttributes.of({ "aria-labelledby": label.id, "aria-describedby": describing }),
      EditorView.updateListener.of((update) => {
        own(update.view);
        if (!update.docChanged) return;
        area.value = update.state.doc.toString();
        area.dispatchEvent(new Event("input", { bubbles: true }));
        check();
      }),
      extensions(offered),
    ],
  });
  const check = checker({
    url: box.dataset.check,
    token: area.form.elements.csrfmiddlewaretoken.value,
    text: () => area.value,
    done: found,
  });

  // Other code, or the browser when it goes back, may write into the text area.
  const follow = () => {
    const text = view.state.doc.toString();
    if (area.value !== text) view.dispatch({ changes: { from: 0, to: text.length, insert: area.value } });
  };
  area.addEventListener("input", follow);
  area.addEventListener("change", follow);
  area.form.addEventListener("reset", () => setTimeout(follow));
  window.addEventListener("pageshow", follow);

  // What has the focus already is edited on, at the same place.
  if (document.activeElement === area) {
    const { selectionStart: anchor, selectionEnd: head } = area;
    view.dispatch({ selection: { anchor, head } });
    view.contentDOM.focus({ preventScroll: true });
  }
  area.classList.add("c-unseen");
  area.tabIndex = -1;
  area.setAttribute("aria-hidden", "true");
  label.removeAttribute("for");
  label.addEventListener("click", () => view.focus());
  hint.hidden = false;
  mark(view, problems);
};

document.querySelectorAll("[data-script-editor]").forEach(start);
