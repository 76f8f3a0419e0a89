/**
 * The A2A clients of other projects that are tested, the official checks of MCP servers, and a generator of clients for our API
 * document, in exact versions. They are 277, 161 and 45 MB, so they are installed into the user's cache folder when they are
 * used, and not with the development packages. To test a new version, change it here.
 */
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { npmInstall } from '../agents/install-cli.ts'
import { cacheFolder, installOnce } from '../harness/user-cache.ts'

export const CLIENT_VERSIONS = {
  'a2a-ai-provider': '0.5.0-alpha.1',
  '@google/adk': '2.0.0',
  '@strands-agents/sdk': '1.19.0',
  '@ag-ui/a2a': '0.0.6',
} as const

/** Packages that the clients take in any version. */
const PEER_VERSIONS = { ai: '6.0.326', '@ag-ui/client': '1.0.0', '@ag-ui/core': '1.0.0', '@a2a-js/sdk': '0.3.14' }

const PACKAGES = Object.entries({ ...CLIENT_VERSIONS, ...PEER_VERSIONS }).map(([name, version]) => `${name}@${version}`)

const FOLDER = join(cacheFolder('clients'), Object.values({ ...CLIENT_VERSIONS, ...PEER_VERSIONS }).join('_'))
const LOADER = 'load.mjs'

const MCP_CHECKS = {
  '@modelcontextprotocol/conformance': '0.2.0-alpha.12',
  '@modelcontextprotocol/inspector': '2.12.0',
}
const MCP_FOLDER = join(cacheFolder('clients'), `mcp-${Object.values(MCP_CHECKS).join('_')}`)

/** The seconds that the installation took; undefined when they were installed before. */
export function ensureMcpChecks(): Promise<number | undefined> {
  const packages = Object.entries(MCP_CHECKS).map(([name, version]) => `${name}@${version}`)
  return installOnce(MCP_FOLDER, (folder) => npmInstall(folder, packages))
}

/** The generator takes only TypeScript 5, which is not the compiler of this repository. */
const GENERATOR = { 'openapi-typescript': '7.13.0', 'openapi-fetch': '0.17.0', typescript: '5.9.3' }
export const GENERATOR_FOLDER = join(cacheFolder('clients'), `generator-${Object.values(GENERATOR).join('_')}`)

/** The seconds that the installation took; undefined when it was installed before. */
export function ensureGenerator(): Promise<number | undefined> {
  const packages = Object.entries(GENERATOR).map(([name, version]) => `${name}@${version}`)
  return installOnce(GENERATOR_FOLDER, (folder) => npmInstall(folder, packages))
}

/** The program of an installed check. */
export const mcpCheck = (name: 'conformance' | 'mcp-inspector'): string => join(MCP_FOLDER, 'node_modules/.bin', name)

/** The seconds that the installation took; undefined when they were installed before. */
export function ensureClients(): Promise<number | undefined> {
  return installOnce(FOLDER, (folder) => {
    npmInstall(folder, PACKAGES)
    // Node looks for a package from the file that imports it, so this file must be beside them.
    writeFileSync(join(folder, LOADER), 'export const load = (name) => import(name)\n')
  })
}

// biome-ignore lint/suspicious/noExplicitAny: the types of these packages are not installed here
export type LoadClient = (packageName: string, dependentPackage?: string) => Promise<any>

/** A function that imports a package of the folder, or the package of that name that a dependent package brings. */
export async function loadClients(): Promise<LoadClient> {
  const { load } = await import(pathToFileURL(join(FOLDER, LOADER)).href)
  return async (name, dependent) =>
    dependent === undefined ? load(name) : createRequire(join(FOLDER, 'node_modules', dependent, 'index.js'))(name)
}
