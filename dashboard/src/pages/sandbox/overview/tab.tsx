import type { TabProps } from '../tabs.ts'
import { Facts } from './facts.tsx'
import { Resources } from './resources.tsx'
import { Timeline } from './timeline.tsx'

const OverviewTab = ({ sandbox }: TabProps) => (
  <div className="stack">
    <Resources sandbox={sandbox} />
    <div className="two-columns">
      <Timeline sandboxId={sandbox.id} />
      <Facts sandbox={sandbox} />
    </div>
  </div>
)

export default OverviewTab
