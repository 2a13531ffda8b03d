import { Button } from '../../../ui/button.tsx'
import { CodeBlock } from '../../../ui/copy.tsx'
import { TimeAgo } from '../../../ui/time.tsx'
import { isWebAddress } from '../words.ts'
import type { SignedLink } from './signed-links.ts'

type LinkListProps = { links: readonly SignedLink[]; isBusy: boolean; onEnd: (link: SignedLink) => void }

/** Lists the signed preview links that were made while this page was open. */
export const LinkList = ({ links, isBusy, onEnd }: LinkListProps) => (
  <section className="card" aria-labelledby="links">
    <div className="card-head">
      <h2 id="links">Links made here</h2>
      <span className="muted small">Anyone who has a link can open the port until the link expires.</span>
    </div>
    <ul className="card-body link-list">
      {links.map((link) => (
        <li key={link.token} className="stack">
          <CodeBlock code={link.url} label={`Copy the link to port ${link.port}`} />
          <div className="row">
            {isWebAddress(link.url) && (
              <a href={link.url} target="_blank" rel="noopener noreferrer">
                Open port {link.port}
              </a>
            )}
            <span className="muted small">
              ends <TimeAgo time={new Date(link.endsAt).toISOString()} />
            </span>
            <Button kind="danger" compact disabled={isBusy} onClick={() => onEnd(link)}>
              End it now<span className="visually-hidden">, the link to port {link.port}</span>
            </Button>
          </div>
        </li>
      ))}
    </ul>
  </section>
)
