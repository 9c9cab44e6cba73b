import { check } from '../../src/cli/check.ts'
import { dataStatus, updateData } from '../../src/cli/data.ts'
import type { Command, Shop, Terminal } from '../../src/cli/command.ts'
import { doctor } from '../../src/cli/doctor.ts'
import { init } from '../../src/cli/init.ts'
import { addRoute } from '../../src/cli/new.ts'
import { pay } from '../../src/cli/pay.ts'
import { exportPayments } from '../../src/cli/payments/export.ts'
import { listPayments } from '../../src/cli/payments/list.ts'
import { prunePayments } from '../../src/cli/payments/prune.ts'
import { reconcilePayments } from '../../src/cli/payments/reconcile.ts'
import { showPayment } from '../../src/cli/payments/show.ts'
import { plan } from '../../src/cli/plan.ts'
import { print } from '../../src/cli/print.ts'
import { routes } from '../../src/cli/routes.ts'
import { runCommand } from '../../src/cli/run.ts'
import { serve } from '../../src/cli/serve.ts'
import { types } from '../../src/cli/types.ts'
import { documentNames } from '../../src/engine/index.ts'
import { readEnv, type Env } from '../../src/env.ts'

export const COMMANDS: readonly Command[] = [
  init,
  serve,
  check,
  routes,
  plan,
  addRoute,
  print,
  types,
  pay,
  listPayments,
  showPayment,
  reconcilePayments,
  exportPayments,
  prunePayments,
  doctor,
  updateData,
  dataStatus,
]

/** Nothing is sold here, and no chain is started: for commands that only look, and for those that go wrong. */
const shopOf = (handlers: readonly string[]): Shop => ({
  handlers: () => Object.fromEntries(handlers.map((name) => [name, unasked])),
  figures: () => new Map(),
  lists: () => {
    throw new Error('not here')
  },
  startStandIns: () => Promise.reject(new Error('not here')),
  openMemories: () => Promise.reject(new Error('not here')),
  openSandbox: () => Promise.reject(new Error('not here')),
  playAddresses: async () => new Set(),
})

const unasked = () => Promise.reject(new Error('no handler is run here'))

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface Surroundings {
  readonly variables?: Readonly<Record<string, string>>
  readonly env?: () => Env
  readonly more?: readonly Command[]
  readonly handlers?: readonly string[]
  readonly reader?: Terminal['reader']
}

/** Runs one command line in this process: what a user sees, without the time a new process takes. */
export async function runLine(
  argv: readonly string[],
  {
    variables = {},
    env = () => readEnv(variables),
    more = [],
    handlers = [],
    reader = 'program',
  }: Surroundings = {},
): Promise<Ran> {
  const out: string[] = []
  const err: string[] = []
  const code = await runCommand({
    commands: [...COMMANDS, ...more],
    argv,
    env,
    terminal: {
      out: (line) => out.push(line),
      err: (line) => err.push(line),
      reader,
      logReader: 'program',
      progress: () => undefined,
    },
    shop: shopOf(handlers),
    version: '9.8.7',
    known: () => ({ handlers, documents: documentNames }),
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}
