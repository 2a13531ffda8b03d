import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Complaint } from './complaint.ts'
import { ensurePackages, type PackageHost } from './system-packages.ts'

const crun = { name: 'crun', why: 'starts sandboxes' }
const nft = { name: 'nftables', why: 'keeps sandboxes apart' }

type Wish = { isDebian?: boolean; lists?: boolean; installWorks?: (tries: number) => boolean }

const hostWith = ({ isDebian = true, lists = true, installWorks = () => true }: Wish) => {
  const asked: string[][] = []
  let missing = [crun, nft]
  let tries = 0
  const host: PackageHost = {
    isDebian,
    missing: () => missing,
    hasPackageLists: () => lists,
    apt: (...args) => {
      asked.push(args)
      if (args[0] !== 'install') return true
      const works = installWorks(++tries)
      if (works) missing = []
      return works
    },
  }
  return { host, asked }
}

suite('installing system packages', () => {
  test('on Debian, missing system packages are installed, and each package is shown with why it is needed', () => {
    const { host, asked } = hostWith({})
    const said: string[] = []
    ensurePackages((line) => said.push(line), host)
    assert.deepEqual(asked, [['install', '-yq', '--no-install-recommends', 'crun', 'nftables']])
    assert.match(said.join('\n'), /crun {6}starts sandboxes\n {2}nftables {2}keeps sandboxes apart/)
  })

  test('if there are no package lists of apt, they are fetched before an install', () => {
    const { host, asked } = hostWith({ lists: false })
    ensurePackages(() => {}, host)
    assert.deepEqual(
      asked.map(([verb]) => verb),
      ['update', 'install'],
    )
  })

  test('if an install fails, the package lists of apt are fetched again before a second attempt', () => {
    const { host, asked } = hostWith({ installWorks: (tries) => tries === 2 })
    ensurePackages(() => {}, host)
    assert.deepEqual(
      asked.map(([verb]) => verb),
      ['install', 'update', 'install'],
    )
  })

  test('on a system other than Debian, the error lists the missing packages, and nothing is installed', () => {
    const { host, asked } = hostWith({ isDebian: false })
    assert.throws(
      () => ensurePackages(() => {}, host),
      (error) => error instanceof Complaint && /crun .*starts sandboxes[\s\S]*nftables/.test(error.message),
    )
    assert.deepEqual(asked, [])
  })

  test('the error of a failed install names the system packages that are still missing', () => {
    const { host } = hostWith({ installWorks: () => false })
    assert.throws(() => ensurePackages(() => {}, host), /could not be installed[\s\S]*crun/)
  })
})
