import { useEffect, useRef, useState } from 'react'
import { apiUrl } from '../../api/client.ts'
import { session } from '../../session/session.ts'
import { ErrorNotice } from '../../ui/error-notice.tsx'
import { isOurs, type OpenApi } from './document.ts'
import { useDark } from './use-dark.ts'

const everyMethod = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const

/** Loads Swagger UI only when it is first needed, because it is large. */
const loadViewer = async () => {
  const [{ default: SwaggerUI }] = await Promise.all([
    import('swagger-ui-dist/swagger-ui-es-bundle.js'),
    import('swagger-ui-dist/swagger-ui.css'),
    import('./viewer.css'),
  ])
  return SwaggerUI
}

type ViewerProps = { document: OpenApi; canCall: boolean }

/** Shows an OpenAPI description. Calls that the reader tries out carry the session's credential, which the page never shows. */
export const Viewer = ({ document: spec, canCall }: ViewerProps) => {
  const place = useRef<HTMLDivElement>(null)
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    const node = place.current!
    let isGone = false
    loadViewer().then((SwaggerUI) => {
      if (isGone) return
      // Each viewer has its own element. So an old viewer that still draws cannot draw over the new one.
      const own = node.appendChild(window.document.createElement('div'))
      SwaggerUI({
        domNode: own,
        spec,
        validatorUrl: null,
        docExpansion: 'none',
        defaultModelsExpandDepth: -1,
        filter: true,
        displayRequestDuration: true,
        showMutatedRequest: false,
        supportedSubmitMethods: canCall ? everyMethod : [],
        requestInterceptor: async (request) => {
          if (isOurs(request.url, [apiUrl, session.config.proxyToolboxUrl]))
            Object.assign(request.headers, await session.headers())
          return request
        },
      })
    }, setError)
    return () => {
      isGone = true
      node.replaceChildren()
    }
  }, [spec, canCall])
  const isDark = useDark()
  useEffect(() => {
    // Swagger UI's style sheet has dark colours for elements inside of an element with the class `dark-mode`.
    const { classList } = window.document.documentElement
    classList.toggle('dark-mode', isDark)
    return () => classList.remove('dark-mode')
  }, [isDark])
  return (
    <>
      {error !== undefined && <ErrorNotice error={error} />}
      <div ref={place} className="viewer card" />
    </>
  )
}
