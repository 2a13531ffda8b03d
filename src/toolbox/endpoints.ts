// All endpoints of the toolbox. Paths are relative to `/toolbox/{sandboxId}`.
import { codeRunRoutes } from './code-run/routes.ts'
import { computerUseRoutes } from './computer-use/routes.ts'
import { execRoutes } from './exec/routes.ts'
import { fileRoutes } from './files/routes.ts'
import { gitRoutes } from './git/routes.ts'
import { interpreterRoutes } from './interpreter/routes.ts'
import { lspRoutes } from './lsp/routes.ts'
import { placesRoutes } from './places/routes.ts'
import { portRoutes } from './ports/routes.ts'
import { ptyRoutes } from './pty/routes.ts'
import { sessionRoutes } from './sessions/routes.ts'
import { sshRoutes } from './ssh/routes.ts'
import { systemRoutes } from './system/routes.ts'
import { variableRoutes } from './variables/routes.ts'

export const toolboxEndpoints = [
  ...execRoutes,
  ...codeRunRoutes,
  ...placesRoutes,
  ...portRoutes,
  ...systemRoutes,
  ...variableRoutes,
  ...fileRoutes,
  ...gitRoutes,
  ...lspRoutes,
  ...computerUseRoutes,
  ...sessionRoutes,
  ...ptyRoutes,
  ...sshRoutes,
  ...interpreterRoutes,
]
