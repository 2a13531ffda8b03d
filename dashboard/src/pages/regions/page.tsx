import { Page } from '../../ui/page.tsx'
import { Regions } from './regions.tsx'
import { Runners } from './runners.tsx'

const RegionsPage = () => (
  <Page
    title="Regions and runners"
    description="The regions in which sandboxes can run, and the runners, which run them."
  >
    <Regions />
    <Runners />
  </Page>
)

export default RegionsPage
