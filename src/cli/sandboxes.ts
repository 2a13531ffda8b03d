// `alcove sandboxes`: lists the sandboxes that the signed-in user may see or, with --data, those that the admin key may see.
import { serverOf } from './ask-server.ts'
import { callServer } from './call.ts'
import { freshSession } from './session.ts'

type Sandbox = { id: string; name: string; state: string; cpu: number; memory: number }
type Page = { items: Sandbox[]; nextCursor: string | null }

const mostPages = 50

type ListParts = {
  file: string
  data?: string | undefined
  organization?: string | undefined
  say: (line: string) => void
}

const accessOf = async (file: string, data: string | undefined): Promise<{ apiUrl: string; accessToken: string }> => {
  if (data === undefined) return await freshSession(file)
  const { url, key } = serverOf(data)
  return { apiUrl: `${url}/api`, accessToken: key }
}

export const sandboxes = async ({ file, data, organization, say }: ListParts): Promise<void> => {
  const { apiUrl, accessToken } = await accessOf(file, data)
  let cursor: string | null = null
  for (let pages = 0; pages < mostPages; pages += 1) {
    const query = new URLSearchParams({ limit: '200', ...(cursor === null ? {} : { cursor }) })
    const page: Page = await callServer<Page>(`${apiUrl}/sandbox?${query}`, {
      headers: {
        authorization: `Bearer ${accessToken}`,
        ...(organization === undefined ? {} : { 'X-Daytona-Organization-ID': organization }),
      },
    })
    for (const { id, name, state, cpu, memory } of page.items)
      say([id, state, `${cpu} cpu`, `${memory} GiB`, name].join('\t'))
    cursor = page.nextCursor
    if (cursor === null) return
  }
}
