// What is handed to an interpreter's standard input, so that the caller's code sees itself as a program of its own: its
// arguments start at index 1, and its error messages name its own lines.
import { readFileSync } from 'node:fs'

const withoutFirstArgument = 'process.argv.splice(1,1);'
const strict = /^\s*(?:'use strict'|"use strict")/

/** `node -` puts a `-` where the arguments should begin. One line with the code's first, so that line numbers stay. */
export const javascriptProgram = (code: string): string => {
  const runnable = code.startsWith('#!') ? `//${code}` : code
  return `${strict.test(runnable) ? "'use strict';" : ''}${withoutFirstArgument}${runnable}`
}

/** A module of its own with a name, so that node reads the source map in it and `require.main === module` holds. */
export const typescriptProgram = (javascript: string): string =>
  `${withoutFirstArgument}{const M=require('module'),f=process.cwd()+'/code.ts',m=new M('.');m.filename=f;` +
  `m.paths=M._nodeModulePaths(process.cwd());process.mainModule=m;process.setSourceMapsEnabled(true);` +
  `m._compile(${JSON.stringify(javascript.toWellFormed())},f)}`

const charts = readFileSync(new URL('./charts.py', import.meta.url), 'utf8')
const drawsCharts = /\b(?:matplotlib|pylab|seaborn)\b/

/** JSON text is a Python literal too, once lone surrogates are gone. */
const pythonText = (text: string) => JSON.stringify(text.toWellFormed())

/** Code that draws runs under charts.py; all other code is left alone. */
export const pythonProgram = (code: string): string =>
  drawsCharts.test(code)
    ? `exec(compile(${pythonText(charts)},'<charts>','exec'),{'__name__':'<charts>','source':${pythonText(code)}})\n`
    : code
