import { Problem } from '#src/problems.ts'
import { splitUrl } from './credentials.ts'
import { problemOf } from './failures.ts'
import { type Git, recordsOf } from './run-git.ts'
import type { AddRemoteRequest, RemoteList } from './schemas.ts'

const remoteKey = /^remote\.(.+)\.url$/s

/** Lists remotes as they were configured, with the first URL of each remote. */
export const listRemotes = async (git: Git): Promise<RemoteList> => {
  const answer = await git.ask(['config', '--local', '-z', '--get-regexp', '^remote\\..*\\.url$'])
  // Exit code 1 means that the repository has no remote.
  if (answer.exitCode > 1) throw problemOf(answer)
  const urls = new Map<string, string>()
  for (const entry of recordsOf(answer.stdout, '\0')) {
    const end = entry.indexOf('\n')
    const name = remoteKey.exec(entry.slice(0, Math.max(0, end)))?.[1]
    if (name !== undefined && !urls.has(name)) urls.set(name, entry.slice(end + 1))
  }
  return { remotes: [...urls].map(([name, url]) => ({ name, url })) }
}

/** Finds the URLs that git will contact. The sandbox's git configuration may rewrite a remote's URL. */
export const getUrls = async (git: Git, remote: string, direction: 'fetch' | 'push'): Promise<string[]> => {
  const push = direction === 'push' ? ['--push'] : []
  const { stdout } = await git.run(['remote', 'get-url', '--all', ...push, '--', remote])
  return recordsOf(stdout, '\n').filter(Boolean)
}

const alreadyExists = 3

export const addRemote = async (git: Git, { name, url, fetch, overwrite }: AddRemoteRequest): Promise<void> => {
  const { credentials } = splitUrl(url)
  if (credentials && credentials.password !== '') {
    throw new Problem('bad_request', 'body.url must not hold a password: give it to each pull and push instead')
  }
  const added = await git.ask(['remote', 'add', '--', name, url])
  if (added.exitCode === alreadyExists && overwrite) {
    await git.run(['config', '--local', '--replace-all', `remote.${name}.url`, url])
    // Remove the old push URL, because pushes would still use it. Ignore the error: the command fails if there is no push URL.
    await git.ask(['config', '--local', '--unset-all', `remote.${name}.pushurl`])
  } else if (added.exitCode !== 0) throw problemOf(added)
  if (fetch) await git.run(['fetch', '--quiet', '--', name])
}
