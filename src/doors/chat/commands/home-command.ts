/** The command /home: where a person wants what the platform says by itself, and at which times of the day not. */
import { homeDoor, type SessionContext } from '../chat-context.ts'
import { quietHoursText, readQuietHours } from '../homes/quiet-hours.ts'
import type { BotCommand } from './command.ts'

const NAME_CHARACTERS_MAX = 100

export const homeCommand: BotCommand = {
  name: 'home',
  text: 'let agents reach you in this chat; "off" ends it, "22:00-07:00 Europe/Berlin" sets quiet hours',
  argument: 'hours',
  action: () => 'message.send',
  async run({ place, author, argument }, context) {
    const { homes, chatLog, stored } = context
    const key = { channel: stored.name, person: author.id }
    if (argument === 'off') {
      const known = await homes.find(key)
      await homes.remove(key)
      if (known !== undefined) await hurry(known.place, context)
      return known === undefined ? 'You have no home chat.' : 'You have no home chat any more.'
    }
    const quiet = argument === '' ? undefined : readQuietHours(argument)
    await chatLog.place({ channel: stored.name, place: place.id }, JSON.stringify(place))
    await homes.set({
      ...key,
      name: author.name.slice(0, NAME_CHARACTERS_MAX),
      place: place.id,
      ...(quiet !== undefined && { quiet }),
    })
    await hurry(place.id, context)
    const hours = quiet === undefined ? '' : ` From ${quietHoursText(quiet)} only what a running turn waits for comes.`
    return `This is your home chat now: what agents report to you comes here.${hours} \`/home off\` ends it.`
  },
}

/** What waits for the end of quiet hours waits by the new ones. */
const hurry = (place: string, { deliveries, stored }: SessionContext): Promise<void> =>
  deliveries.hurry(homeDoor(stored.name), place)
