import { Empty, Page } from '../../ui/page.tsx'

const UnfinishedPage = () => (
  <Page title="Usage">
    <Empty title="This page is not built yet" />
  </Page>
)

export default UnfinishedPage
