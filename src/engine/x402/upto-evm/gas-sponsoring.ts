/** The extension with which a payer has its approval of Permit2 sent along (x402, eip2612_gas_sponsoring.md). */
export const GAS_SPONSORING = 'eip2612GasSponsoring'
