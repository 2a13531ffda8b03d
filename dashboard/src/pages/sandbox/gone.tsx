import { Link } from '@tanstack/react-router'
import { buttonClass } from '../../ui/button.tsx'
import { CopyText } from '../../ui/copy.tsx'
import { Page } from '../../ui/page.tsx'
import { Timeline } from './overview/timeline.tsx'

/** Shown instead of a sandbox that was deleted or never existed. The timeline of a deleted sandbox stays readable for 30 days. */
export const Gone = ({ sandboxId, name }: { sandboxId: string; name: string | undefined }) => (
  <Page
    title={name === undefined ? 'No such sandbox' : `${name} is gone`}
    description={<CopyText text={sandboxId} />}
    actions={
      <Link to="/sandboxes" className={buttonClass()}>
        All sandboxes
      </Link>
    }
  >
    <div className="notice">
      This organization has no sandbox with this id or name. The sandbox may have been deleted, or belong to another
      organization. For 30 days, the timeline of a deleted sandbox can be opened by the id of the sandbox.
    </div>
    <Timeline sandboxId={sandboxId} />
  </Page>
)
