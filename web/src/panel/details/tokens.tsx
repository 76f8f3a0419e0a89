/** The access tokens of a workspace, for admins: make, rotate, revoke. A secret is shown once, right after it was made. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { TokenSecretView, TokenView } from '../../../../src/client/views.ts'
import { client } from '../../api/client.ts'
import { keys } from '../../api/queries.ts'
import { Button } from '../../ui/button.tsx'
import { Chip } from '../../ui/chip.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Loaded, Row, Rows, Section } from '../../ui/section.tsx'
import { CopyButton } from '../../ui/text/code-block.tsx'
import { Time } from '../../ui/text/time.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { refresh, usePanelAction } from '../refresh.ts'
import type { TabProps } from '../tab.ts'
import { NewTokenDialog } from './new-token.tsx'

export function Tokens({ workspace }: TabProps) {
  const [isMaking, setMaking] = useState(false)
  const [secret, setSecret] = useState<TokenSecretView>()
  const tokens = useQuery({
    queryKey: keys.workspace(workspace.id, 'tokens'),
    queryFn: async () => (await client.call('GET /tokens')).tokens.filter((token) => reaches(token, workspace.id)),
  })
  const show = (made: TokenSecretView) => {
    setMaking(false)
    setSecret(made)
    refresh(workspace.id, 'tokens')
  }
  return (
    <Section
      title="Access tokens"
      count={tokens.data?.length}
      action={<Button onClick={() => setMaking(true)}>New token</Button>}
    >
      <Loaded query={tokens}>
        {(data) => <TokenList tokens={data} workspaceId={workspace.id} name={workspace.name} onSecret={show} />}
      </Loaded>
      {isMaking ? <NewTokenDialog workspace={workspace} onClose={() => setMaking(false)} onMade={show} /> : null}
      {secret === undefined ? null : <SecretDialog secret={secret} onClose={() => setSecret(undefined)} />}
    </Section>
  )
}

/** Tokens for this workspace alone or by name. Those of the whole platform and the tokens of turns are not listed. */
const reaches = ({ kind, role, workspace_id: own, workspaces }: TokenView, id: string): boolean =>
  kind === 'token' && role !== 'conversation' && (own === id || (workspaces?.includes(id) ?? false))

interface TokenListProps {
  readonly tokens: readonly TokenView[]
  readonly workspaceId: string
  readonly name: string
  readonly onSecret: (secret: TokenSecretView) => void
}

function TokenList({ tokens, workspaceId, name, onSecret }: TokenListProps) {
  if (tokens.length === 0)
    return <EmptyState title="No tokens">Programs and bridges that use a token for {name} are listed here.</EmptyState>
  return (
    <Rows>
      {tokens.map((token) => (
        <TokenRow key={token.id} token={token} workspaceId={workspaceId} onSecret={onSecret} />
      ))}
    </Rows>
  )
}

interface TokenRowProps {
  readonly token: TokenView
  readonly workspaceId: string
  readonly onSecret: (secret: TokenSecretView) => void
}

function TokenRow({ token, workspaceId, onSecret }: TokenRowProps) {
  const { isBusy, run } = usePanelAction()
  const [isRevoking, setRevoking] = useState(false)
  const rotate = () => run(async () => onSecret(await client.call('POST /tokens/{id}/rotate', { id: token.id })))
  const revoke = async () => {
    setRevoking(false)
    if (await run(() => client.call('DELETE /tokens/{id}', { id: token.id }))) showToast(`“${token.name}” is revoked`)
    refresh(workspaceId, 'tokens')
  }
  return (
    <Row
      actions={
        <>
          <Button variant="quiet" disabled={isBusy} onClick={rotate}>
            Rotate<span className="sr-only">{` ${token.name}`}</span>
          </Button>
          <Button disabled={isBusy} onClick={() => setRevoking(true)}>
            Revoke<span className="sr-only">{` ${token.name}`}</span>
          </Button>
        </>
      }
    >
      <p className="flex min-w-0 items-center gap-2">
        <span title={token.name} className="truncate">
          {token.name}
        </span>
        <Chip>{token.role}</Chip>
      </p>
      <TokenTimes token={token} />
      {isRevoking ? (
        <Dialog
          title={`Revoke “${token.name}”?`}
          onClose={() => setRevoking(false)}
          actions={
            <>
              <Button onClick={revoke}>Revoke</Button>
              <Button variant="ink" onClick={() => setRevoking(false)}>
                Keep it
              </Button>
            </>
          }
        >
          <p className="text-soft">Programs that use it are refused at once, and their open streams end.</p>
        </Dialog>
      ) : null}
    </Row>
  )
}

function TokenTimes({ token }: { readonly token: TokenView }) {
  const { last_used_at: used, expires_at: expires, old_secret_until: old } = token
  return (
    <p className="text-faint text-time">
      {used === null ? (
        <>
          Never used. Made <Time at={token.created_at} />.
        </>
      ) : (
        <>
          Last used <Time at={used} />.
        </>
      )}{' '}
      {expires === null ? (
        'Never expires.'
      ) : (
        <>
          Expires <Time at={expires} />.
        </>
      )}
      {old == null ? null : (
        <>
          {' '}
          Its old secret works until <Time at={old} />.
        </>
      )}
    </p>
  )
}

function SecretDialog({ secret, onClose }: { readonly secret: TokenSecretView; readonly onClose: () => void }) {
  return (
    <Dialog
      title="The secret, shown once"
      onClose={onClose}
      actions={
        <Button variant="ink" onClick={onClose}>
          I have kept it
        </Button>
      }
    >
      <div className="flex flex-col gap-3">
        <p className="text-soft">Keep it now: the platform stores only a hash and cannot show it again.</p>
        <div className="flex items-center gap-2 rounded-button border border-line bg-raised py-1 pr-1 pl-3">
          <code data-secret className="min-w-0 flex-1 break-all font-mono text-second">
            {secret.token}
          </code>
          <CopyButton text={secret.token} />
        </div>
      </div>
    </Dialog>
  )
}
