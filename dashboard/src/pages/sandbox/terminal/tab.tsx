import { useState } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { Button } from '../../../ui/button.tsx'
import { Confirm } from '../../../ui/confirm.tsx'
import { FormDialog } from '../../../ui/dialog.tsx'
import { TextField } from '../../../ui/field.tsx'
import { Empty } from '../../../ui/page.tsx'
import { NotRunning } from '../not-running.tsx'
import { longestName, mostTerminals, type OpenTerminal } from './open-terminals.ts'
import { OthersDialog } from './others-dialog.tsx'
import { endPty } from './pty-calls.ts'
import { Screen } from './screen.tsx'
import { TabStrip } from './tab-strip.tsx'
import { useOpenTerminals } from './use-open-terminals.ts'
import './terminal.css'

const readAloudKey = 'alcove.screen-reader'

const RenameDialog = ({
  terminal,
  onClose,
  onRename,
}: {
  terminal: OpenTerminal
  onClose: () => void
  onRename: (name: string) => void
}) => {
  const [name, setName] = useState(terminal.name)
  return (
    <FormDialog
      title="Rename this terminal"
      isOpen
      onClose={onClose}
      submit="Rename"
      isSubmitDisabled={name.trim() === ''}
      onSubmit={async () => {
        onRename(name.trim())
        onClose()
      }}
    >
      <TextField
        label="Name"
        hint="Only this browser stores the name."
        value={name}
        maxLength={longestName}
        onChange={setName}
      />
    </FormDialog>
  )
}

/** The tab with the terminals of a sandbox. Their shells run on when the page is closed. */
const TerminalTab = ({ sandbox }: { sandbox: Sandbox }) => {
  const terminals = useOpenTerminals(sandbox.id)
  const { open, shown, seen } = terminals
  const [renamed, setRenamed] = useState<OpenTerminal>()
  const [closed, setClosed] = useState<OpenTerminal>()
  const [areOthersShown, setOthersShown] = useState(false)
  const [isReadAloud, setReadAloud] = useState(() => localStorage.getItem(readAloudKey) !== null)
  const isRunning = sandbox.state === 'started'
  const readAloud = (isOn: boolean) => {
    setReadAloud(isOn)
    if (isOn) localStorage.setItem(readAloudKey, 'yes')
    else localStorage.removeItem(readAloudKey)
  }
  return (
    <div className="stack">
      {!isRunning && <NotRunning sandbox={sandbox} needs="A terminal needs a running sandbox." />}
      <div className="card terminal-card">
        <TabStrip
          open={open}
          shown={shown}
          onShow={terminals.show}
          onNew={terminals.addNew}
          onClose={(each) => (each.isNew ? terminals.remove(each.id) : setClosed(each))}
          onRename={setRenamed}
          onOthers={() => setOthersShown(true)}
        />
        {open
          .filter(({ id }) => seen.has(id))
          .map((each) => (
            <Screen
              key={each.id}
              sandbox={sandbox}
              terminal={each}
              isShown={each.id === shown}
              isRunning={isRunning}
              isReadAloud={isReadAloud}
              onReadAloud={readAloud}
              onMade={() => terminals.made(each.id)}
              onNew={() => terminals.replace(each)}
            />
          ))}
        {open.length === 0 && (
          <Empty
            title="No terminal is open"
            action={
              <Button kind="primary" onClick={terminals.addNew}>
                Open a terminal
              </Button>
            }
          />
        )}
      </div>
      {renamed !== undefined && (
        <RenameDialog
          key={renamed.id}
          terminal={renamed}
          onClose={() => setRenamed(undefined)}
          onRename={(name) => terminals.rename(renamed.id, name)}
        />
      )}
      <Confirm
        title={`Close ${closed?.name ?? ''}?`}
        verb="End the shell"
        isOpen={closed !== undefined}
        onClose={() => setClosed(undefined)}
        onConfirm={async () => {
          if (closed === undefined) return
          if (isRunning) await endPty(sandbox, closed.id)
          terminals.remove(closed.id)
        }}
      >
        <p>This ends the shell and all processes that it has started.</p>
      </Confirm>
      <OthersDialog
        sandbox={sandbox}
        openIds={new Set(open.map(({ id }) => id))}
        isOpen={areOthersShown}
        onClose={() => setOthersShown(false)}
        onOpen={(id) => {
          if (open.length < mostTerminals) terminals.addExisting(id)
          setOthersShown(false)
        }}
      />
    </div>
  )
}

export default TerminalTab
