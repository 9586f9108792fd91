/*
 * For scripts/bench-rename: which places TypeScript's language service renames with one. node typescript.js TREE
 * FILE...; reads {"path", "at"} a line (bytes), writes [[path, byte], ...] or null where it knows nothing.
 *
 * An import or export under the same name is followed (both sides get the new name), {name} of an object is not:
 * the property keeps its name when the variable gets another, and the other way round.
 */
'use strict';
const path = require('path'), fs = require('fs'), readline = require('readline');
let ts;
try { ts = require('typescript'); } catch { ts = require('/usr/share/nodejs/typescript'); }

const tree = fs.realpathSync(process.argv[2]), files = process.argv.slice(3).map(f => path.join(tree, f));
const known = new Set(files);
let options = {};
const config = ts.findConfigFile(tree, ts.sys.fileExists);
if (config && config.startsWith(tree))
  options = ts.parseJsonConfigFileContent(ts.readConfigFile(config, ts.sys.readFile).config, ts.sys, path.dirname(config)).options;
options = { target: ts.ScriptTarget.ES2021, ...options, allowJs: true, checkJs: false, noEmit: true, maxNodeModuleJsDepth: 0,
  moduleResolution: ts.ModuleResolutionKind.NodeJs, module: ts.ModuleKind.CommonJS, composite: false, incremental: false };
const host = {
  getScriptFileNames: () => files,
  getScriptVersion: () => '1',
  getScriptSnapshot: f => fs.existsSync(f) ? ts.ScriptSnapshot.fromString(fs.readFileSync(f, 'utf8')) : undefined,
  getCurrentDirectory: () => tree,
  getCompilationSettings: () => options,
  getDefaultLibFileName: o => ts.getDefaultLibFilePath(o),
  fileExists: ts.sys.fileExists, readFile: ts.sys.readFile, readDirectory: ts.sys.readDirectory,
  directoryExists: ts.sys.directoryExists, getDirectories: ts.sys.getDirectories,
};
const service = ts.createLanguageService(host, ts.createDocumentRegistry());
const texts = new Map();
function text(f) {
  if (!texts.has(f)) texts.set(f, fs.readFileSync(f, 'utf8'));
  return texts.get(f);
}
const toByte = (f, at) => Buffer.byteLength(text(f).slice(0, at));
const toUnit = (f, byte) => Buffer.from(text(f)).subarray(0, byte).toString('utf8').length;

function nodeAt(f, at) {
  const source = service.getProgram().getSourceFile(f);
  let found = source;
  (function down(n) {
    ts.forEachChild(n, c => { if (c.pos <= at && at < c.end) { found = c; down(c); } });
  })(source);
  return found;
}
/* Does the name go through here to another file or to an alias of the same name? */
function isPassage(f, at) {
  const n = nodeAt(f, at), p = n.parent;
  if (!p) return false;
  if (ts.isImportSpecifier(p) || ts.isExportSpecifier(p)) return !p.propertyName;
  if (ts.isBindingElement(p) && !p.propertyName) { /* const {name} = require('./m') */
    const d = p.parent.parent;
    return ts.isVariableDeclaration(d) && d.initializer && ts.isCallExpression(d.initializer) &&
      d.initializer.expression.getText() === 'require';
  }
  /* exports.name = name */
  const left = ts.isPropertyAccessExpression(p) && p.name === n ? p : ts.isBinaryExpression(p) && p.right === n ? p.left : null;
  if (left && ts.isPropertyAccessExpression(left) && /^(module\.)?exports$/.test(left.expression.getText()) &&
      ts.isBinaryExpression(left.parent) && left.parent.left === left && ts.isIdentifier(left.parent.right) &&
      left.name.text === left.parent.right.text) return true;
  return ts.isShorthandPropertyAssignment(p) && isExportName(n);
}
const isExports = n => /^(module\.)?exports$/.test(n.getText());
/* The name under which a module exports: module.exports = {name}, {name: value}, exports.name = value. */
function isExportName(n) {
  const p = n.parent;
  if (p && (ts.isShorthandPropertyAssignment(p) || ts.isPropertyAssignment(p)) && p.name === n)
    return ts.isBinaryExpression(p.parent.parent) && p.parent.parent.right === p.parent && isExports(p.parent.parent.left);
  return p && ts.isPropertyAccessExpression(p) && p.name === n && isExports(p.expression);
}
function identifiers(f, name) {
  const all = [];
  (function down(n) { if (ts.isIdentifier(n) && n.text === name) all.push(n); ts.forEachChild(n, down); })(service.getProgram().getSourceFile(f));
  return all;
}
/* The file that a value is required from; undefined: none. */
function requiredFrom(value, g) {
  if (!value || !ts.isCallExpression(value) || value.expression.getText() !== 'require' || !value.arguments.length) return undefined;
  const module = ts.resolveModuleName(value.arguments[0].text || '', g, options, ts.sys).resolvedModule;
  return module && module.resolvedFileName;
}
/* The file from which this name is taken as a property: const {name} = require('./m'), m.name. */
function takenFrom(n, g) {
  const p = n.parent;
  if (ts.isBindingElement(p) && (p.propertyName || p.name) === n && ts.isVariableDeclaration(p.parent.parent))
    return requiredFrom(p.parent.parent.initializer, g);
  if (!ts.isPropertyAccessExpression(p) || p.name !== n) return undefined;
  if (!ts.isIdentifier(p.expression)) return requiredFrom(p.expression, g);
  const symbol = service.getProgram().getTypeChecker().getSymbolAtLocation(p.expression);
  const d = symbol && symbol.declarations && symbol.declarations.find(x => ts.isVariableDeclaration(x));
  return d && requiredFrom(d.initializer, g);
}
/* All places of a name that a module exports as a property, whichever of its values that has, and where others take it. */
function exported(f, at) {
  const name = nodeAt(f, at).text, places = identifiers(f, name).filter(isExportName).map(n => [f, n.getStart()]);
  for (const g of files)
    if (g !== f && text(g).includes(name))
      places.push(...identifiers(g, name).filter(n => takenFrom(n, g) === f).map(n => [g, n.getStart()]));
  return places.map(([fileName, start]) => ({ fileName, textSpan: { start } }));
}
/* The other side of exports.name = name. */
function across(f, at) {
  const n = nodeAt(f, at), p = n.parent;
  if (ts.isBinaryExpression(p) && p.right === n && ts.isPropertyAccessExpression(p.left)) return [[f, p.left.name.getStart()]];
  if (ts.isPropertyAccessExpression(p) && p.name === n && ts.isBinaryExpression(p.parent)) return [[f, p.parent.right.getStart()]];
  return [];
}
function answer(q) {
  const from = path.join(tree, q.path), found = new Map(), todo = [[from, toUnit(from, q.at)]], seen = new Set();
  while (todo.length) {
    const [f, at] = todo.pop();
    if (seen.has(f + ':' + at)) continue;
    seen.add(f + ':' + at);
    let places = [];
    /* What a library of the language declares keeps its name. */
    if (!found.size && !service.getRenameInfo(f, at).canRename) return null;
    try {
      places = service.findRenameLocations(f, at, false, false, true) || [];
      if (isPassage(f, at)) places = places.concat(service.findRenameLocations(f, at, false, false, false) || []);
      if (isExportName(nodeAt(f, at))) places = places.concat(exported(f, at));
    } catch (e) { if (!found.size) return null; }
    for (const p of places) {
      if (!known.has(p.fileName)) continue;
      const key = p.fileName + ':' + p.textSpan.start;
      if (!found.has(key)) {
        found.set(key, [path.relative(tree, p.fileName), toByte(p.fileName, p.textSpan.start)]);
        if (isPassage(p.fileName, p.textSpan.start) || isExportName(nodeAt(p.fileName, p.textSpan.start))) todo.push([p.fileName, p.textSpan.start], ...across(p.fileName, p.textSpan.start));
      }
    }
  }
  return found.size ? [...found.values()] : null;
}
readline.createInterface({ input: process.stdin }).on('line', l => process.stdout.write(JSON.stringify(answer(JSON.parse(l))) + '\n'));
