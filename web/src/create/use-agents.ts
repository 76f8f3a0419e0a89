/** The agents on the platform's machine. */
import { useQuery } from '@tanstack/react-query'
import type { FoundAgentView } from '../../../src/client/views.ts'
import { client } from '../api/client.ts'
import { type AgentChoice, foundChoices } from './agents.ts'

/** A version that is still asked for comes with the next look. */
const LOOK_AGAIN_MS = 3000

export interface FoundChoices {
  /** Undefined until the first look. */
  readonly found: readonly FoundAgentView[] | undefined
  /** Those that are installed. */
  readonly choices: readonly AgentChoice[] | undefined
  readonly error: Error | null
  readonly look: () => void
  readonly isLooking: boolean
}

export function useAgents(): FoundChoices {
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ['agents'],
    queryFn: async () => (await client.call('GET /agents')).agents,
    refetchInterval: ({ state }) =>
      state.data?.some((agent) => agent.installed && agent.version === undefined && agent.problem === undefined)
        ? LOOK_AGAIN_MS
        : false,
  })
  const choices = data && foundChoices(data).filter(({ isMissing }) => isMissing === undefined)
  return { found: data, choices, error, look: () => void refetch(), isLooking: isFetching }
}
