/** The calls of the platform client about chat channels and the people in them. */

interface ChannelRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body?: string
}

export interface ChannelCalls {
  addChannel(channel: NewChannelBody): Promise<ChannelView & { readonly steps: readonly string[] }>
  listChannels(): Promise<ChannelView[]>
  removeChannel(name: string): Promise<void>
  bindPlace(channel: string, place: string, workspaceId: string): Promise<void>
  unbindPlace(channel: string, place: string): Promise<void>
  listPairings(): Promise<PairingView[]>
  /** By code, or by `<channel>/<person>`. */
  approvePairing(id: string, role: 'user' | 'owner'): Promise<PairingView>
  denyPairing(id: string): Promise<PairingView>
}

export interface NewChannelBody {
  readonly kind: string
  readonly token: string
  readonly name?: string
  /** Changes a channel of this name; its bindings and pairings stay. */
  readonly replace?: boolean
  readonly workspace_id?: string
  readonly api_url?: string
  readonly allowed_people?: readonly string[]
  readonly allowed_places?: readonly string[]
  readonly allowed_bots?: readonly string[]
}

export interface ChannelView {
  readonly name: string
  readonly kind: string
  readonly account: string | null
  readonly workspace_id: string | null
  readonly problem: string | null
  readonly allowed_people: readonly string[]
  readonly allowed_places: readonly string[] | null
  readonly allowed_bots: readonly string[]
  readonly bindings: readonly { readonly place: string; readonly workspace_id: string }[]
}

export interface PairingView {
  readonly channel: string
  readonly person: string
  readonly name: string
  readonly state: 'pending' | 'approved' | 'denied'
  readonly role: 'user' | 'owner'
  /** Of a pending pairing. */
  readonly code: string | null
  readonly decided_by: string | null
  readonly held: number
  readonly created_at: string
}

export function channelCalls(call: (request: ChannelRequest) => Promise<unknown>): ChannelCalls {
  const channelAt = (name: string) => `/channels/${encodeURIComponent(name)}`
  const bindingAt = (channel: string, place: string) => `${channelAt(channel)}/bindings/${encodeURIComponent(place)}`
  const decide = async (id: string, decision: 'approve' | 'deny', body: object) =>
    (await call({
      method: 'POST',
      path: `/pairings/${encodeURIComponent(id)}/${decision}`,
      body: JSON.stringify(body),
    })) as PairingView
  return {
    addChannel: async (channel) =>
      (await call({ method: 'POST', path: '/channels', body: JSON.stringify(channel) })) as ChannelView & {
        readonly steps: readonly string[]
      },
    listChannels: async () =>
      ((await call({ method: 'GET', path: '/channels' })) as { channels: ChannelView[] }).channels,
    async removeChannel(name) {
      await call({ method: 'DELETE', path: channelAt(name) })
    },
    async bindPlace(channel, place, workspaceId) {
      const body = JSON.stringify({ workspace_id: workspaceId })
      await call({ method: 'PUT', path: bindingAt(channel, place), body })
    },
    async unbindPlace(channel, place) {
      await call({ method: 'DELETE', path: bindingAt(channel, place) })
    },
    listPairings: async () =>
      ((await call({ method: 'GET', path: '/pairings' })) as { pairings: PairingView[] }).pairings,
    approvePairing: (id, role) => decide(id, 'approve', { role }),
    denyPairing: (id) => decide(id, 'deny', {}),
  }
}
