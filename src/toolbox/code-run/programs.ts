// How code becomes a program of its own: which interpreter is started, and what it reads on standard input. Arguments start
// at index 1, error messages name the code's own lines, and standard input is at its end for the code.
import { readFileSync } from 'node:fs'

export type Program = { argv: readonly string[]; stdin: string }

const read = (name: string) => readFileSync(new URL(`./${name}`, import.meta.url), 'utf8')

/** JSON text is a literal of Python and JavaScript too, once lone surrogates are gone. */
const literal = (text: string) => JSON.stringify(text.toWellFormed())

/**
 * The program is read from standard input, where it is not seen in a list of processes, and run by eval: node itself, given
 * `-`, would have read `process.stdin` to its end before the code can listen to that, and would be no main module.
 */
const reads = "process.execArgv.splice(0,2);require.main=module;(0,eval)(require('fs').readFileSync(0,'utf8'))"
const node = ['node', '-e', reads, '--']
const named = '\n//# sourceURL=[stdin]'

/** Code without these words is a script. With them it may be one all the same. */
const mayBeModule = /\b(?:import|export|await)\b/

/** In a script `await (x)` calls a function named await; at the beginning of a line nobody means that. */
const awaitsAtTop = /^(?:(?:const|let|var)\s[^=\n]*=\s*)?await\b/m

/**
 * Modules have no `require`; code that was written for `node -` may use both. Their standard input has been read by node for
 * their own text: what reads it again finds its end. The `-` is no argument of theirs.
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

/** Only such code can tell whether it has a file. */
const mayWantName = /__filename|__dirname|\bWorker\b/

/** A worker that is given the module's own address runs the module again. */
const workersOf = (module: string) =>
  "{const threads=require('worker_threads'),{Worker}=threads,own=new Set([__filename,import.meta.url,decodeURI(import.meta.url)," +
  "require('url').fileURLToPath(import.meta.url)]);threads.Worker=class extends Worker{constructor(given,options){" +
  `super(own.has(String(given))?new URL('data:text/javascript,'+encodeURIComponent(${literal(module)})):given,options)}};` +
  "require('module').syncBuiltinESMExports()}"

const names = "globalThis.__dirname=process.cwd();globalThis.__filename=process.cwd()+'/code.js';"

/** What stands before a module, in its first line, so that the numbers of lines stay. */
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

/** A file by its path, as opposed to a package. */
export const importsFiles = (code: string): boolean =>
  /(?:\bfrom|\bimport|\brequire)\s*\(?\s*['"`](?:\.{1,2})?\//.test(code)

/**
 * With a name, so that node reads the source map in it and `require.main === module` holds. `typeRemover` is given for code that
 * imports files, which may be TypeScript.
 */
export const typescriptProgram = (javascript: string, typeRemover?: string): Program => {
  const files = typeRemover === undefined ? '' : `(${takeTypescript})(${typeRemover});`
  return { argv: node, stdin: `${files}(${runAsFile})(${literal(javascript)},'code.ts')` }
}

export const typescriptModule = (javascript: string): Program => ({
  argv: ['node', '--enable-source-maps', '--input-type=module', '-'],
  stdin: preludeOf(javascript) + javascript,
})

/** A module that imports TypeScript files. Node's loader of modules does not read these, so it becomes a function that may await. */
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
 * Only what is imported can ask for the program's file, and on standard input Python takes no encoding but utf-8; the rest runs
 * sooner without main.py.
 */
const needsMain = /import|__file__|coding[:=]/

/** Under main.py the first line of standard input is ours, the rest is the code. Code that draws runs under charts.py too. */
export const pythonProgram = (code: string): Program => {
  if (!needsMain.test(code)) return { argv: ['python3', '-u', '-'], stdin: code.toWellFormed() }
  const first = [...(drawsCharts.test(code) ? [inPython(charts, 'charts')] : []), inPython(main, 'main')].join(';')
  return {
    argv: ['python3', '-u', '-c', 'import sys;exec(sys.stdin.buffer.readline())'],
    stdin: `${first}\n${code.toWellFormed()}`,
  }
}
