// Problems of a script, at their places: underlined, marked in the gutter, and in words below their lines.
import { setDiagnostics, setDiagnosticsEffect } from "@codemirror/lint";
import { StateField } from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";

const SAID = /^Line (\d+), column (\d+): ([^]*)$/;

// The problems that the server has written beside the field.
export const written = (field) => [...field.querySelectorAll(".c-error")].flatMap((node) => {
  const said = SAID.exec(node.textContent.trim());
  return said ? [{ line: Number(said[1]), column: Number(said[2]), message: said[3] }] : [];
});

// Columns count characters, positions count UTF-16 units. The mark reaches to the end of the word.
const placed = (doc) => ({ line: number, column, message }) => {
  const line = doc.line(Math.min(Math.max(number, 1), doc.lines));
  const start = Math.min([...line.text].slice(0, Math.max(column - 1, 0)).join("").length, line.length);
  const [word = ""] = /^(?:[\p{L}\p{N}_]+|\S)/u.exec(line.text.slice(start)) || [];
  const from = line.from + start;
  return { from, to: from + word.length, severity: "error", message };
};

class Said extends WidgetType {
  constructor(text) {
    super();
    this.text = text;
  }

  eq(other) { return other.text === this.text; }

  toDOM() {
    const node = document.createElement("div");
    node.className = "cm-said";
    node.textContent = this.text;
    return node;
  }
}

const below = (doc, diagnostics) => {
  const lines = new Map();
  for (const { from, message } of diagnostics) {
    const at = doc.lineAt(from).to;
    lines.set(at, [...(lines.get(at) || []), message]);
  }
  const widgets = [...lines].map(([at, texts]) =>
    Decoration.widget({ widget: new Said(texts.join("\n")), block: true, side: 1 }).range(at));
  return Decoration.set(widgets, true);
};

export const messages = StateField.define({
  create: () => Decoration.none,
  update(shown, transaction) {
    let now = shown.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(setDiagnosticsEffect)) now = below(transaction.newDoc, effect.value);
    }
    return now;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export const mark = (view, problems) => {
  const { doc } = view.state;
  view.dispatch(setDiagnostics(view.state, problems.map(placed(doc))));
  view.dom.classList.toggle("c-code-wrong", problems.length > 0);
};
