import { join } from 'node:path'
import { KeptRevisions } from '../engine/app/kept-revisions.ts'
import { systemRuntime } from '../engine/base/runtime.ts'

/** The revisions that a server with this data directory keeps. */
export function keptRevisions(dataDir: string): KeptRevisions {
  return new KeptRevisions(join(dataDir, 'revisions'), systemRuntime.now)
}
