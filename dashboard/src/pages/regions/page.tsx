import { Page } from '../../ui/page.tsx'
import { Regions } from './regions.tsx'
import { Runners } from './runners.tsx'

const RegionsPage = () => (
  <Page title="Regions and runners" description="Where sandboxes can be, and the programs that keep them there.">
    <Regions />
    <Runners />
  </Page>
)

export default RegionsPage
