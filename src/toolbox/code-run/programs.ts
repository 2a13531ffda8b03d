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

const runEither = read('main.cjs')
  .replaceAll(/^ *\/\/.*\n/gm, '')
  .trim()
  .replace(/^;/, '')

export const javascriptProgram = (code: string): Program => {
  const runnable = (code.startsWith('#!') ? `//${code}` : code).toWellFormed()
  if (!mayBeModule.test(runnable)) return { argv: node, stdin: runnable + named }
  const given = [literal(runnable), literal(modulePrelude), String(awaitsAtTop.test(runnable))]
  return { argv: node, stdin: `(${runEither})(${given})` }
}

/** A module of its own with a name, so that node reads the source map in it and `require.main === module` holds. */
export const typescriptProgram = (javascript: string): Program => ({
  argv: node,
  stdin:
    `{const M=require('module'),f=process.cwd()+'/code.ts',m=new M('.');m.filename=f;` +
    `m.paths=M._nodeModulePaths(process.cwd());process.mainModule=m;process.setSourceMapsEnabled(true);` +
    `m._compile(${literal(javascript)},f)}`,
})

export const typescriptModule = (javascript: string): Program => ({
  argv: ['node', '--enable-source-maps', '--input-type=module', '-'],
  stdin: modulePrelude + javascript,
})

const main = literal(read('main.py'))
const charts = literal(read('charts.py'))
const drawsCharts = /\b(?:matplotlib|pylab|seaborn)\b/

const inPython = (text: string, name: string) => `exec(compile(${text},'<${name}>','exec'),{'__name__':'<${name}>'})`

/** Only what is imported can ask for the program's file; the rest runs sooner without main.py. */
const mayWantFile = /import|__file__/

/** Under main.py the first line of standard input is ours, the rest is the code. Code that draws runs under charts.py too. */
export const pythonProgram = (code: string): Program => {
  if (!mayWantFile.test(code)) return { argv: ['python3', '-u', '-'], stdin: code.toWellFormed() }
  const first = [...(drawsCharts.test(code) ? [inPython(charts, 'charts')] : []), inPython(main, 'main')].join(';')
  return {
    argv: ['python3', '-u', '-c', 'import sys;exec(sys.stdin.buffer.readline())'],
    stdin: `${first}\n${code.toWellFormed()}`,
  }
}
