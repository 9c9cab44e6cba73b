import type { Catalog } from '../engine/index.ts'
import type { PaymentMeans } from './assemble.ts'
import type { Call, Sandbox } from './command.ts'

/** Who is paid and who settles, from the environment or the sandbox. */
export type Means = Pick<PaymentMeans, 'payTo' | 'rpcUrls' | 'signerKeys'>

export function meansOf({ env }: Call, catalog: Catalog, sandbox: Sandbox | undefined): Means {
  if (sandbox !== undefined) {
    const { payTo, chainId, rpcUrl, settlerKey } = sandbox.evm
    return { payTo, rpcUrls: { [chainId]: rpcUrl }, signerKeys: [settlerKey] }
  }
  return {
    payTo: env.payTo ?? catalog.payments.payTo ?? '',
    rpcUrls: env.rpcUrls,
    signerKeys: env.settlerKeys,
  }
}

/** The sandbox takes the place of the catalog's payments: play money only, on its own chain. */
export function inSandbox(catalog: Catalog, { evm }: Sandbox): Catalog {
  const networks = [`eip155:${evm.chainId}`]
  const x402 = { timeout: catalog.payments.x402?.timeout ?? 60_000, networks }
  return { ...catalog, payments: { ...catalog.payments, payTo: evm.payTo, x402, mpp: undefined } }
}
