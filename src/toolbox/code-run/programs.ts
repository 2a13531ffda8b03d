// Turns a caller's code into a program: an interpreter, which reads the code from standard input. When the code runs, standard
// input is empty. The caller's arguments begin at index 1. Error messages have the line numbers of the caller's code.
import { readFileSync } from 'node:fs'

export type Program = { argv: readonly string[]; stdin: string }

const read = (name: string) => readFileSync(new URL(`./${name}`, import.meta.url), 'utf8')

/** Returns the text as a string literal that is valid in both Python and JavaScript. Lone surrogates become U+FFFD. */
const literal = (text: string) => JSON.stringify(text.toWellFormed())

/**
 * JavaScript that reads the caller's code from standard input and evaluates it, so that process lists do not show the code. Under
 * `node -`, the code could not use `process.stdin`, and would not be the main module.
 */
const reads = "process.execArgv.splice(0,2);require.main=module;(0,eval)(require('fs').readFileSync(0,'utf8'))"
const node = ['node', '-e', reads, '--']
const named = '\n//# sourceURL=[stdin]'

/** JavaScript that contains none of these words is a script, not a module. JavaScript that contains one of them may be either. */
const mayBeModule = /\b(?:import|export|await)\b/

/**
 * Matches top-level `await` at the beginning of a line. A script could also call a function named await there, but hardly any
 * script does.
 */
const awaitsAtTop = /^(?:(?:const|let|var)\s[^=\n]*=\s*)?await\b/m

/**
 * JavaScript that runs before a module's code. It provides `require`, which code for `node -` may use. It makes a new, empty
 * `process.stdin`, because node has read the code from the original one. It removes the argument `-`.
 */
const modulePrelude =
  "process.argv.splice(1,1);{const m=await import('module');globalThis.require=m.createRequire(process.cwd()+'/');" +
  "let s;Object.defineProperty(process,'stdin',{configurable:true,enumerable:true," +
  "get:()=>s??=require('fs').createReadStream('',{fd:0,autoClose:false})});m.syncBuiltinESMExports()}"

const expression = (name: string) =>
  read(name)
    .replaceAll(/^ *\/\/.*\n/gm, '')
    .trim()
    .replace(/^;/, '')

const runEither = expression('main.cjs')
const runAsFile = expression('file.cjs')
const takeTypescript = expression('local-typescript.cjs')

/** Matches code that may depend on the name of its file. Only such code gets a file name. */
const mayWantName = /__filename|__dirname|\bWorker\b/

/**
 * Returns JavaScript that replaces the class `Worker`. The caller's code has no file. If the code starts a worker with the
 * value of `__filename` or `import.meta.url`, the worker gets the text `module`.
 */
const workersOf = (module: string) =>
  "{const threads=require('worker_threads'),{Worker}=threads,own=new Set([__filename,import.meta.url,decodeURI(import.meta.url)," +
  "require('url').fileURLToPath(import.meta.url)]);threads.Worker=class extends Worker{constructor(given,options){" +
  `super(own.has(String(given))?new URL('data:text/javascript,'+encodeURIComponent(${literal(module)})):given,options)}};` +
  "require('module').syncBuiltinESMExports()}"

const names = "globalThis.__dirname=process.cwd();globalThis.__filename=process.cwd()+'/code.js';"

/** Code that runs before a module's code. It goes into the module's first line, so that line numbers do not change. */
const preludeOf = (module: string): string => {
  if (!mayWantName.test(module)) return modulePrelude
  return modulePrelude + names + (/\bWorker\b/.test(module) ? workersOf(modulePrelude + names + module) : '')
}

export const javascriptProgram = (code: string): Program => {
  const runnable = (code.startsWith('#!') ? `//${code}` : code).toWellFormed()
  const asFile = mayWantName.test(runnable) ? `(${runAsFile})(${literal(runnable)},'code.js')` : undefined
  if (!mayBeModule.test(runnable)) return { argv: node, stdin: asFile ?? runnable + named }
  const given = [
    literal(runnable),
    literal(preludeOf(runnable)),
    String(awaitsAtTop.test(runnable)),
    literal(asFile ?? runnable + named),
  ]
  return { argv: node, stdin: `(${runEither})(${given})` }
}

/** Whether the code imports a file by its path. An import of a package by its name does not count. */
export const importsFiles = (code: string): boolean =>
  /(?:\bfrom|\bimport|\brequire)\s*\(?\s*['"`](?:\.{1,2})?\//.test(code)

/**
 * Builds the program for compiled TypeScript. The code runs as a file `code.ts`. Node therefore uses the code's source map, and
 * `require.main === module` is true. `typeRemover` is needed only if the code imports files.
 */
export const typescriptProgram = (javascript: string, typeRemover?: string): Program => {
  const files = typeRemover === undefined ? '' : `(${takeTypescript})(${typeRemover});`
  return { argv: node, stdin: `${files}(${runAsFile})(${literal(javascript)},'code.ts')` }
}

export const typescriptModule = (javascript: string): Program => ({
  argv: ['node', '--enable-source-maps', '--input-type=module', '-'],
  stdin: preludeOf(javascript) + javascript,
})

/**
 * Makes the program for a module that imports TypeScript files. Node's module loader cannot load them, so the module becomes an
 * async function.
 */
export const typescriptFunction = (javascript: string, typeRemover: string): Program => {
  const body =
    `const transform=${typeRemover};(${takeTypescript})(transform);` +
    `const {code}=transform(${literal(javascript)},{transforms:['imports']});` +
    `(${runAsFile})('module.exports=(async()=>{'+code+'\\n})()','code.ts')`
  return { argv: node, stdin: `{${body}}` }
}

const main = literal(read('main.py'))
const charts = literal(read('charts.py'))
const drawsCharts = /\b(?:matplotlib|pylab|seaborn)\b/

const inPython = (text: string, name: string) => `exec(compile(${text},'<${name}>','exec'),{'__name__':'<${name}>'})`

/**
 * Matches Python code that main.py must run. main.py puts the caller's code into a file, because some modules read this file.
 * Without main.py, Python reads the code from standard input, and may then refuse a `coding` comment. Other code runs faster
 * without main.py.
 */
const needsMain = /import|__file__|coding[:=]/

/** Builds the program for Python code. Python gets main.py, and charts.py if needed, in the first line of standard input. */
export const pythonProgram = (code: string): Program => {
  if (!needsMain.test(code)) return { argv: ['python3', '-u', '-'], stdin: code.toWellFormed() }
  const first = [...(drawsCharts.test(code) ? [inPython(charts, 'charts')] : []), inPython(main, 'main')].join(';')
  return {
    argv: ['python3', '-u', '-c', 'import sys;exec(sys.stdin.buffer.readline())'],
    stdin: `${first}\n${code.toWellFormed()}`,
  }
}
