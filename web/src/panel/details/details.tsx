/** The facts of a workspace, its actions, messages that failed, how to connect it, and its access tokens. Each by role. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { WorkspaceSummary } from '../../../../src/client/views.ts'
import { client } from '../../api/client.ts'
import { useMay, usePlatformUrl, useWorkspaces } from '../../api/queries.ts'
import { asSentence } from '../../api/sentence.ts'
import { cardStateOf } from '../../canvas/card-state.ts'
import { connectCommand } from '../../create/connect-command.ts'
import { ConnectNotes } from '../../create/connect-notes.tsx'
import { PERMISSION_SENTENCES, permissionOf } from '../../create/permission-sentences.ts'
import { writePlace } from '../../route/route.ts'
import { Chip } from '../../ui/chip.tsx'
import { Dot } from '../../ui/dot.tsx'
import { Section } from '../../ui/section.tsx'
import { CopyButton } from '../../ui/text/code-block.tsx'
import { Time } from '../../ui/text/time.tsx'
import type { TabProps } from '../tab.ts'
import { DeadLetters } from './dead-letters.tsx'
import { Tokens } from './tokens.tsx'
import { WorkspaceActions } from './workspace-actions.tsx'

export function Details({ workspace }: TabProps) {
  const may = useMay()
  return (
    <div className="flex flex-col gap-6 p-5 max-md:p-4">
      <Presence workspace={workspace} />
      <WorkspaceActions workspace={workspace} />
      {may('dead-letter.read') ? <DeadLetters workspace={workspace} /> : null}
      <Facts workspace={workspace} />
      {workspace.runtime === 'external' ? <Connect workspace={workspace} /> : null}
      {may('token.handle') ? <Tokens workspace={workspace} /> : null}
    </div>
  )
}

function Presence({ workspace }: TabProps) {
  const { dot, word, banner } = cardStateOf(workspace)
  // Of what needs a person the card has the reason, without the command for a terminal.
  const reason = banner?.kind === 'needs' ? banner.text : workspace.status_reason
  return (
    <div className="flex flex-col gap-2">
      <p className="flex items-center gap-2 font-[600]">
        <Dot state={dot} />
        {word}
      </p>
      {reason ? <p className="break-words text-second text-soft">{asSentence(reason)}</p> : null}
      <PermissionBadge workspace={workspace} />
    </div>
  )
}

function PermissionBadge({ workspace }: TabProps) {
  const permission = permissionOf(workspace)
  if (permission === undefined) return null
  const [badge, sentence] = PERMISSION_SENTENCES[permission]
  return (
    <p className="flex flex-wrap items-center gap-2 text-second text-soft">
      <Chip>{badge}</Chip>
      {sentence}
      <a href={writePlace({ workspaceId: workspace.id, tab: 'config' })} className="rounded-tag text-accent">
        Change it in Config
      </a>
    </p>
  )
}

function Facts({ workspace }: TabProps) {
  const workspaces = useWorkspaces()
  const parent = workspace.parent_id ? workspaces.get(workspace.parent_id) : undefined
  const address = `${usePlatformUrl()}/workspaces/${workspace.id}/a2a`
  return (
    <Section title="Facts">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-2 text-second">
        <Fact name="Agent">
          {workspace.runtime}
          <AgentVersion runtime={workspace.runtime} />
        </Fact>
        {workspace.model ? <Fact name="Model">{workspace.model}</Fact> : null}
        {workspace.working_dir && workspace.runtime !== 'external' ? (
          <Fact name="Folder">
            <code className="font-mono">{workspace.working_dir}</code>
          </Fact>
        ) : null}
        {parent ? (
          <Fact name="Parent">
            <a href={writePlace({ workspaceId: parent.id, tab: 'details' })} className="rounded-tag text-accent">
              {parent.name}
            </a>
          </Fact>
        ) : null}
        {workspace.team ? <Fact name="Team">{workspace.team}</Fact> : null}
        <Fact name="At once">{turnsText(workspace)}</Fact>
        <Fact name="Made">
          <Time at={workspace.created_at} />
        </Fact>
        <Fact name="Address">
          <span className="flex items-center gap-1">
            <code className="min-w-0 break-all font-mono text-time">{address}</code>
            <CopyButton text={address} />
          </span>
        </Fact>
      </dl>
    </Section>
  )
}

const turnsText = ({ max_concurrent_tasks: most, max_attempts: attempts }: WorkspaceSummary): string =>
  `${most === 1 ? '1 turn' : `${most} turns`}, ${attempts === 1 ? '1 attempt' : `${attempts} attempts`} for a message`

/** The version of the program on the machine of the platform. An external agent runs elsewhere. */
function AgentVersion({ runtime }: { readonly runtime: string }) {
  const may = useMay()
  const { data } = useQuery({
    queryKey: ['agents'],
    queryFn: async () => (await client.call('GET /agents')).agents,
    enabled: may('agent.read') && runtime !== 'external',
  })
  const version = data?.find(({ backend }) => backend === runtime)?.version
  return version === undefined ? null : <span className="ml-2 font-mono text-faint">{version}</span>
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt className="text-faint">{name}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  )
}

function Connect({ workspace }: TabProps) {
  const url = usePlatformUrl()
  const command = connectCommand(workspace.id, { url })
  return (
    <Section title="Connect">
      <p className="text-second text-soft">
        Run this on the machine of the agent, with a token of this workspace in MOLECULE_WORKSPACE_TOKEN; make one
        below.
      </p>
      <div className="flex items-center gap-2 rounded-button border border-line bg-raised py-1 pr-1 pl-3">
        <code className="min-w-0 flex-1 break-all font-mono text-second">{command}</code>
        <CopyButton text={command} />
      </div>
      <ConnectNotes url={url} />
    </Section>
  )
}
