import type { Call } from './command.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { examineListing } from './doctor/registry-probes.ts'
import { examineProduction } from './doctor/production.ts'
import { examineService, originOf } from './doctor/running-service.ts'
import { trySources } from './doctor/source-trials.ts'

export async function doctor(call: Call): Promise<number> {
  const [target] = call.positionals
  if (call.flags.given('listing')) {
    if (target === undefined) throw new UsageError('name the URL of the service that is to be listed')
    return examineListing(call, target)
  }
  if (call.flags.given('production'))
    return examineProduction(call, target === undefined ? undefined : originOf(target))
  return target === undefined ? trySources(call) : examineService(call, target)
}
