/** What an agent may do without asking: one of three, with its tools. */
import { Field } from '../ui/field.tsx'
import { OptionCards } from '../ui/option-cards.tsx'

export type AgentPermission = 'ask' | 'allowed_tools' | 'bypass'

const PERMISSIONS: readonly { readonly id: AgentPermission; readonly title: string; readonly about: string }[] = [
  { id: 'ask', title: 'Ask me', about: 'It asks before it runs a command or changes a file.' },
  { id: 'allowed_tools', title: 'Only allowed tools', about: 'It uses the tools you list. All others are refused.' },
  { id: 'bypass', title: 'Everything, without asking', about: 'It never asks. A badge on its card says so.' },
]

export interface PermissionChoiceProps {
  readonly permission: AgentPermission
  readonly allowedTools: string
  readonly onChange: (more: { readonly permission?: AgentPermission; readonly allowedTools?: string }) => void
}

export function PermissionChoice({ permission, allowedTools, onChange }: PermissionChoiceProps) {
  return (
    <div className="flex flex-col gap-2">
      <OptionCards
        label="What may it do?"
        options={PERMISSIONS}
        chosen={permission}
        onChoose={(chosen) => onChange({ permission: chosen as AgentPermission })}
      />
      {permission === 'allowed_tools' ? (
        <Field
          label="Allowed tools"
          value={allowedTools}
          onChange={({ target }) => onChange({ allowedTools: target.value })}
          placeholder="Read, Edit, Bash(npm test:*)"
          spellCheck={false}
          className="font-mono"
          hint="With commas between them, as the agent names them."
        />
      ) : null}
    </div>
  )
}
