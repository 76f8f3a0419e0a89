/** The folder in which the agent of a workspace works, where it is on the machine of the platform. Pure. */
import type { WorkspaceSummary } from '../../../../../src/client/views.ts'

/** Their agents run on another machine, or use no files. */
const WITHOUT_FOLDER: ReadonlySet<string> = new Set(['external', 'a2a', 'openai', 'mock'])

export const shownFolder = ({
  runtime,
  working_dir: folder,
}: Pick<WorkspaceSummary, 'runtime' | 'working_dir'>): string | undefined =>
  WITHOUT_FOLDER.has(runtime) ? undefined : folder
