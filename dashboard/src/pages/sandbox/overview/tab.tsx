import { Empty } from '../../../ui/page.tsx'
import type { TabProps } from '../tabs.ts'

const OverviewTab = (_: TabProps) => <Empty title="This part is not built yet" />

export default OverviewTab
