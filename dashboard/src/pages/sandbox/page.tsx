import { Empty, Page } from '../../ui/page.tsx'

const UnfinishedPage = () => (
  <Page title="Sandbox">
    <Empty title="This page is not built yet" />
  </Page>
)

export default UnfinishedPage
