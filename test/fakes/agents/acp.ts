/** Any ACP agent: started by a plain command, with the dialect that its first word names. */
import { type AcpDialect, acpAgent } from './acp-agent.ts'
import { print } from './fake-agent.ts'

const [word = 'plain'] = process.argv.slice(2)
if (word === '--version') print('fake 1.2.3\n')
else acpAgent(word as AcpDialect)
