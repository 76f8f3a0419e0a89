/** A generic ACP agent; its first argument names the dialect. */
import { type AcpDialect, acpAgent } from './acp-agent.ts'
import { print } from './fake-agent.ts'

const [argument = 'plain'] = process.argv.slice(2)
if (argument === '--version') print('fake 1.2.3\n')
else acpAgent(argument as AcpDialect)
