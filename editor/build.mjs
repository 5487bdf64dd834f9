// Bundle the editor into one file, and the licences of what is in it into another.
// `node build.mjs <folder>`; the same sources and lock give the same bytes.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";
import { build } from "esbuild";

const [folder] = argv.slice(2);
const { metafile } = await build({
  entryPoints: ["src/main.js"],
  outfile: join(folder, "editor.js"),
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: "/*! The script editor, with CodeMirror 6. Licences: licenses.txt beside this file. */" },
  metafile: true,
  logLevel: "warning",
});

const NAME = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//;
const bundled = Object.values(metafile.outputs)
  .flatMap((output) => Object.entries(output.inputs))
  .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  .map(([path]) => NAME.exec(path)?.[1])
  .filter(Boolean);
const notices = [...new Set(bundled)].sort().map((name) => {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
});
const head = "editor.js contains these packages, under their own licences.\n";
writeFileSync(join(folder, "licenses.txt"), [head, ...notices].join(`\n${"-".repeat(72)}\n\n`));
