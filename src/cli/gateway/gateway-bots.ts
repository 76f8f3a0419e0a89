/** Makes the channels of the platform equal to the bots of the environment. */
import type { PlatformClient } from '../../client/platform-client.ts'
import type { Log } from '../../log.ts'
import { makeOwners, revokeOwners } from './gateway-owners.ts'
import type { GatewayChannel } from './gateway-settings.ts'

/** The names of the bots. A bot of an earlier start is removed; one that `channel add` has made stays and is named. */
export async function setUpBots(
  platform: PlatformClient,
  channels: readonly GatewayChannel[],
  { workspaceId, log }: { readonly workspaceId: string; readonly log: Log },
): Promise<string[]> {
  const warn = (sentence: string) => log.warn({}, sentence)
  const named = channels.map(({ kind }) => kind.kind)
  const before = await platform.all('GET /channels', 'channels')
  for (const { name, kind, gateway, workspace_id: answering } of before) {
    if (named.includes(name)) continue
    if (gateway) {
      await platform.call('DELETE /channels/{channel}', { channel: name })
      warn(`the ${kind} bot "${name}" of an earlier start is not in the environment, so it is removed`)
    } else if (answering === workspaceId)
      warn(
        `the ${kind} bot "${name}" is not in the environment and still answers; "molecule channel remove ${name}" removes it`,
      )
  }
  const bots: string[] = []
  for (const channel of channels) {
    const { kind: name } = channel.kind
    const known = before.find((one) => one.name === name)
    const owned = { name, owners: channel.owners, before: known?.gateway?.owners ?? [] }
    await revokeOwners(platform, owned, warn)
    bots.push(await addChannel(platform, channel, workspaceId))
    await makeOwners(platform, owned)
  }
  return bots
}

async function addChannel(platform: PlatformClient, channel: GatewayChannel, workspaceId: string): Promise<string> {
  const { kind, token, settings, apiUrl, allowedPeople, allowedPlaces, owners } = channel
  const body = {
    kind: kind.kind,
    token,
    settings,
    workspace_id: workspaceId,
    replace: true,
    api_url: apiUrl,
    allowed_people: allowedPeople,
    allowed_places: allowedPlaces,
    gateway: { owners: [...owners] },
  }
  const { account } = await platform.call('POST /channels', { body })
  return `${kind.kind} bot ${account ?? ''}`
}
