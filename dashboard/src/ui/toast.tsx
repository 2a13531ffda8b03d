// Shows short messages at the edge of the page. Any code can call these functions, not only React components.
import { Toast } from '@base-ui/react/toast'
import { ApiProblem } from '../api/problem.ts'

const manager = Toast.createToastManager()

export const toast = (title: string, description?: string): void => {
  manager.add({ title, description, type: 'plain' })
}

/** Shows which action failed (`what`), with the error's message and its request id. */
export const toastError = (what: string, error: unknown): void => {
  const { message } = error as Error
  const id = error instanceof ApiProblem && error.requestId !== undefined ? ` (request ${error.requestId})` : ''
  manager.add({ title: what, description: `${message}${id}`, type: 'danger', timeout: 15_000, priority: 'high' })
}

const List = () => {
  const { toasts } = Toast.useToastManager()
  return toasts.map((each) => (
    <Toast.Root key={each.id} toast={each} className={each.type === 'danger' ? 'toast danger' : 'toast'}>
      <Toast.Title className="toast-title" render={<div />} />
      <Toast.Description render={<div />} />
    </Toast.Root>
  ))
}

export const Toasts = () => (
  <Toast.Provider toastManager={manager} limit={4}>
    <Toast.Portal>
      <Toast.Viewport className="toasts">
        <List />
      </Toast.Viewport>
    </Toast.Portal>
  </Toast.Provider>
)
