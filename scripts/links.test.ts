import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, resolve } from 'node:path'
import { suite, test } from 'node:test'

const root = resolve(import.meta.dirname, '..')
const pages = globSync(['*.md', '{docs,bench,deploy,examples,src}/**/*.md'], { cwd: root })

const withoutCode = (page: string) => readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '')

/** Returns the anchors of a page's headings, as GitHub makes them. */
const anchorsOf = (page: string): string[] =>
  [...withoutCode(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )

const isBroken = (page: string, link: string): boolean => {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? page : normalize(join(dirname(page), path))
  if (!existsSync(join(root, target))) return true
  return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).includes(anchor)
}

suite('links in the Markdown pages of this repository', () => {
  test('each relative link in a Markdown page names an existing file, and its anchor an existing heading', () => {
    const links = pages.flatMap((page) =>
      [...withoutCode(page).matchAll(/\]\((?!\w+:)([^)\s]+)\)/g)].map(([, link = '']) => ({ page, link })),
    )
    assert.ok(links.length > 200)
    assert.deepEqual(
      links.filter(({ page, link }) => isBroken(page, link)),
      [],
    )
  })
})
