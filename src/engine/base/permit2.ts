import type { Address } from './address.ts'

/** Permit2, at the same address on every network: https://github.com/Uniswap/permit2. */
export const PERMIT2: Address = '0x000000000022D473030F116dDEE9F6B43aC78BA3'

/** The proxy of scheme upto (x402, scheme_upto_evm.md), which alone may use what is signed for it. */
export const UPTO_PROXY: Address = '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002'

/** The extension with which a payer has its approval of Permit2 sent along (x402, eip2612_gas_sponsoring.md). */
export const GAS_SPONSORING = 'eip2612GasSponsoring'
