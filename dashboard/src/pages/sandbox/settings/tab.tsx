import { PublicCard } from '../public-card.tsx'
import type { TabProps } from '../tabs.ts'
import { useSandbox } from '../use-sandbox.ts'
import { DangerCard } from './danger-card.tsx'
import { KeyCard } from './key-card.tsx'
import { LabelsForm } from './labels-form.tsx'
import { LifetimeForm } from './lifetime-form.tsx'
import { NetworkForm } from './network-form.tsx'
import { SecretsForm } from './secrets-form.tsx'
import { SizeForm } from './size-form.tsx'
import { SshCard } from './ssh-card.tsx'
import { TimersForm } from './timers-form.tsx'
import './settings.css'

/** How often the settings are fetched again, in ms. The server sends no event when somebody else changes a setting. */
const settingsMilliseconds = 15_000

const SettingsTab = ({ sandbox }: TabProps) => {
  useSandbox(sandbox.id, settingsMilliseconds)
  return (
    <div className="settings">
      <TimersForm sandbox={sandbox} />
      <LifetimeForm sandbox={sandbox} />
      <NetworkForm sandbox={sandbox} />
      <PublicCard sandbox={sandbox} />
      <LabelsForm sandbox={sandbox} />
      <SizeForm sandbox={sandbox} />
      <SecretsForm sandbox={sandbox} />
      <SshCard sandbox={sandbox} />
      <KeyCard sandbox={sandbox} />
      <DangerCard sandbox={sandbox} />
    </div>
  )
}

export default SettingsTab
