// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IToken {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
}

interface ICollector {
    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata data) external;
}

interface IWallet {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// @title Payment channels for a chain that lives on one machine.
/// @notice Answers as the contract of the x402 scheme `batch-settlement` does (functions, events, errors, EIP-712
/// domain and types), because the code that reads it must not notice the difference. It stands at the same address.
contract Channels {
    struct ChannelConfig {
        address payer;
        address payerAuthorizer;
        address receiver;
        address receiverAuthorizer;
        address token;
        uint40 withdrawDelay;
        bytes32 salt;
    }

    struct Voucher {
        ChannelConfig channel;
        uint128 maxClaimableAmount;
    }

    struct VoucherClaim {
        Voucher voucher;
        bytes signature;
        uint128 totalClaimed;
    }

    struct ChannelState {
        uint128 balance;
        uint128 totalClaimed;
    }

    struct WithdrawalState {
        uint128 amount;
        uint40 initiatedAt;
    }

    struct ReceiverState {
        uint128 totalClaimed;
        uint128 totalSettled;
    }

    uint40 public constant MIN_WITHDRAW_DELAY = 15 minutes;
    uint40 public constant MAX_WITHDRAW_DELAY = 30 days;

    bytes32 public constant CHANNEL_CONFIG_TYPEHASH = keccak256(
        "ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)"
    );
    bytes32 public constant VOUCHER_TYPEHASH = keccak256("Voucher(bytes32 channelId,uint128 maxClaimableAmount)");
    bytes32 public constant REFUND_TYPEHASH = keccak256("Refund(bytes32 channelId,uint256 nonce,uint128 amount)");
    bytes32 public constant CLAIM_ENTRY_TYPEHASH =
        keccak256("ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)");
    bytes32 public constant CLAIM_BATCH_TYPEHASH = keccak256(
        "ClaimBatch(ClaimEntry[] claims)ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)"
    );
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    uint256 private constant HALF_CURVE_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    mapping(bytes32 => ChannelState) public channels;
    mapping(bytes32 => uint256) public refundNonce;
    mapping(bytes32 => WithdrawalState) public pendingWithdrawals;
    mapping(address => mapping(address => ReceiverState)) public receivers;
    bool private transient entered;

    event ChannelCreated(bytes32 indexed channelId, ChannelConfig config);
    event ChannelClosed(bytes32 indexed channelId, ChannelConfig config);
    event Deposited(bytes32 indexed channelId, address indexed sender, uint128 amount, uint128 newBalance);
    event Claimed(bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed);
    event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount);
    event Refunded(bytes32 indexed channelId, address indexed sender, uint128 amount);
    event WithdrawInitiated(bytes32 indexed channelId, uint128 amount, uint40 finalizeAfter);
    event WithdrawFinalized(bytes32 indexed channelId, address indexed sender, uint128 amount);

    error InvalidChannel();
    error ZeroDeposit();
    error DepositOverflow();
    error InvalidSignature();
    error NotReceiverAuthorizer();
    error NotAuthorizedToClaim();
    error NotAuthorizedToRefund();
    error ClaimExceedsCeiling();
    error ClaimExceedsBalance();
    error WithdrawalAlreadyPending();
    error WithdrawalNotPending();
    error NotAuthorizedToFinalizeWithdraw();
    error WithdrawDelayNotElapsed();
    error NothingToWithdraw();
    error WithdrawAmountExceedsAvailable();
    error WithdrawDelayOutOfRange();
    error EmptyBatch();
    error DepositCollectionFailed();
    error InvalidCollector();
    error InvalidRefundNonce();
    error ZeroRefund();
    error ReentrancyGuardReentrantCall();
    error TransferFailed();

    modifier once() {
        if (entered) revert ReentrancyGuardReentrantCall();
        entered = true;
        _;
        entered = false;
    }

    function multicall(bytes[] calldata data) external returns (bytes[] memory results) {
        results = new bytes[](data.length);
        for (uint256 i; i < data.length; i++) {
            (bool success, bytes memory answer) = address(this).delegatecall(data[i]);
            if (!success) {
                assembly ("memory-safe") {
                    revert(add(answer, 0x20), mload(answer))
                }
            }
            results[i] = answer;
        }
    }

    // Deposits

    function deposit(ChannelConfig calldata config, uint128 amount, address collector, bytes calldata collectorData)
        external
        once
    {
        if (
            config.payer == address(0) || config.receiver == address(0) || config.receiverAuthorizer == address(0)
                || config.token == address(0)
        ) revert InvalidChannel();
        if (config.withdrawDelay < MIN_WITHDRAW_DELAY || config.withdrawDelay > MAX_WITHDRAW_DELAY) {
            revert WithdrawDelayOutOfRange();
        }
        if (amount == 0) revert ZeroDeposit();
        if (collector == address(0)) revert InvalidCollector();
        bytes32 id = getChannelId(config);
        ChannelState storage channel = channels[id];
        if (amount > type(uint128).max - channel.balance) revert DepositOverflow();
        channel.balance += amount;
        uint256 before = IToken(config.token).balanceOf(address(this));
        ICollector(collector).collect(config.payer, config.token, amount, id, collectorData);
        if (IToken(config.token).balanceOf(address(this)) != before + amount) revert DepositCollectionFailed();
        if (channel.balance == amount && channel.totalClaimed == 0) emit ChannelCreated(id, config);
        emit Deposited(id, msg.sender, amount, channel.balance);
    }

    // Claims

    function claim(VoucherClaim[] calldata claims) external once {
        if (claims.length == 0) revert EmptyBatch();
        for (uint256 i; i < claims.length; i++) {
            if (!isReceiver(claims[i].voucher.channel)) revert NotAuthorizedToClaim();
            record(claims[i]);
        }
    }

    function claimWithSignature(VoucherClaim[] calldata claims, bytes calldata authorizerSignature) external once {
        if (claims.length == 0) revert EmptyBatch();
        address authorizer = claims[0].voucher.channel.receiverAuthorizer;
        requireApproval(authorizer, getClaimBatchDigest(claims), authorizerSignature);
        for (uint256 i; i < claims.length; i++) {
            if (claims[i].voucher.channel.receiverAuthorizer != authorizer) revert NotReceiverAuthorizer();
            record(claims[i]);
        }
    }

    function settle(address receiver, address token) external once {
        ReceiverState storage state = receivers[receiver][token];
        uint128 amount = state.totalClaimed - state.totalSettled;
        if (amount == 0) return;
        state.totalSettled = state.totalClaimed;
        pay(token, receiver, amount);
        emit Settled(receiver, token, msg.sender, amount);
    }

    // Withdrawals of the payer

    function initiateWithdraw(ChannelConfig calldata config, uint128 amount) external once {
        if (!isPayer(config)) revert InvalidChannel();
        if (amount == 0) revert NothingToWithdraw();
        bytes32 id = getChannelId(config);
        WithdrawalState storage pending = pendingWithdrawals[id];
        if (pending.initiatedAt != 0) revert WithdrawalAlreadyPending();
        if (amount > available(id)) revert WithdrawAmountExceedsAvailable();
        pending.amount = amount;
        pending.initiatedAt = uint40(block.timestamp);
        emit WithdrawInitiated(id, amount, uint40(block.timestamp) + config.withdrawDelay);
    }

    function finalizeWithdraw(ChannelConfig calldata config) external once {
        if (!isPayer(config)) revert NotAuthorizedToFinalizeWithdraw();
        bytes32 id = getChannelId(config);
        WithdrawalState memory pending = pendingWithdrawals[id];
        if (pending.initiatedAt == 0) revert WithdrawalNotPending();
        if (block.timestamp < uint256(pending.initiatedAt) + config.withdrawDelay) revert WithdrawDelayNotElapsed();
        delete pendingWithdrawals[id];
        uint128 free = available(id);
        uint128 amount = pending.amount > free ? free : pending.amount;
        ChannelState storage channel = channels[id];
        channel.balance -= amount;
        emit WithdrawFinalized(id, msg.sender, amount);
        if (channel.balance == 0 && channel.totalClaimed == 0) emit ChannelClosed(id, config);
        if (amount > 0) pay(config.token, config.payer, amount);
    }

    // Refunds of the receiver

    function refund(ChannelConfig calldata config, uint128 amount) external once {
        if (!isReceiver(config)) revert NotAuthorizedToRefund();
        giveBack(config, amount);
    }

    function refundWithSignature(
        ChannelConfig calldata config,
        uint128 amount,
        uint256 nonce,
        bytes calldata receiverAuthorizerSignature
    ) external once {
        bytes32 id = getChannelId(config);
        if (nonce != refundNonce[id]) revert InvalidRefundNonce();
        requireApproval(config.receiverAuthorizer, getRefundDigest(id, nonce, amount), receiverAuthorizerSignature);
        giveBack(config, amount);
    }

    // Digests

    function getChannelId(ChannelConfig calldata config) public view returns (bytes32) {
        return digestOf(keccak256(abi.encode(CHANNEL_CONFIG_TYPEHASH, config)));
    }

    function getVoucherDigest(bytes32 channelId, uint128 maxClaimableAmount) public view returns (bytes32) {
        return digestOf(keccak256(abi.encode(VOUCHER_TYPEHASH, channelId, maxClaimableAmount)));
    }

    function getRefundDigest(bytes32 channelId, uint256 nonce, uint128 amount) public view returns (bytes32) {
        return digestOf(keccak256(abi.encode(REFUND_TYPEHASH, channelId, nonce, amount)));
    }

    function getClaimBatchDigest(VoucherClaim[] calldata claims) public view returns (bytes32) {
        bytes32[] memory entries = new bytes32[](claims.length);
        for (uint256 i; i < claims.length; i++) {
            Voucher calldata voucher = claims[i].voucher;
            entries[i] = keccak256(
                abi.encode(
                    CLAIM_ENTRY_TYPEHASH,
                    getChannelId(voucher.channel),
                    voucher.maxClaimableAmount,
                    claims[i].totalClaimed
                )
            );
        }
        return digestOf(keccak256(abi.encode(CLAIM_BATCH_TYPEHASH, keccak256(abi.encodePacked(entries)))));
    }

    function domainSeparator() public view returns (bytes32) {
        return keccak256(
            abi.encode(DOMAIN_TYPEHASH, keccak256("x402 Batch Settlement"), keccak256("1"), block.chainid, address(this))
        );
    }

    // Inside

    function digestOf(bytes32 structHash) private view returns (bytes32) {
        return keccak256(abi.encodePacked("\x19\x01", domainSeparator(), structHash));
    }

    function isPayer(ChannelConfig calldata config) private view returns (bool) {
        return msg.sender == config.payer || msg.sender == config.payerAuthorizer;
    }

    function isReceiver(ChannelConfig calldata config) private view returns (bool) {
        return msg.sender == config.receiver || msg.sender == config.receiverAuthorizer;
    }

    function available(bytes32 id) private view returns (uint128) {
        ChannelState storage channel = channels[id];
        return channel.balance - channel.totalClaimed;
    }

    // A claim that was recorded before does nothing.
    function record(VoucherClaim calldata claimed) private {
        ChannelConfig calldata config = claimed.voucher.channel;
        bytes32 id = getChannelId(config);
        ChannelState storage channel = channels[id];
        uint128 total = claimed.totalClaimed;
        if (total <= channel.totalClaimed) return;
        if (total > claimed.voucher.maxClaimableAmount) revert ClaimExceedsCeiling();
        if (total > channel.balance) revert ClaimExceedsBalance();
        bytes32 digest = getVoucherDigest(id, claimed.voucher.maxClaimableAmount);
        if (config.payerAuthorizer == address(0)) requireApproval(config.payer, digest, claimed.signature);
        else if (recover(digest, claimed.signature) != config.payerAuthorizer) revert InvalidSignature();
        uint128 amount = total - channel.totalClaimed;
        channel.totalClaimed = total;
        receivers[config.receiver][config.token].totalClaimed += amount;
        emit Claimed(id, msg.sender, amount, total);
    }

    // The nonce moves even when there is nothing to give back.
    function giveBack(ChannelConfig calldata config, uint128 asked) private {
        if (asked == 0) revert ZeroRefund();
        bytes32 id = getChannelId(config);
        refundNonce[id]++;
        uint128 free = available(id);
        uint128 amount = asked > free ? free : asked;
        if (amount == 0) return;
        ChannelState storage channel = channels[id];
        channel.balance -= amount;
        WithdrawalState storage pending = pendingWithdrawals[id];
        if (pending.initiatedAt != 0) {
            if (amount >= pending.amount) delete pendingWithdrawals[id];
            else pending.amount -= amount;
        }
        emit Refunded(id, msg.sender, amount);
        if (channel.balance == 0 && channel.totalClaimed == 0) emit ChannelClosed(id, config);
        pay(config.token, config.payer, amount);
    }

    function pay(address token, address to, uint256 amount) private {
        (bool success, bytes memory answer) = token.call(abi.encodeCall(IToken.transfer, (to, amount)));
        if (!success) {
            assembly ("memory-safe") {
                revert(add(answer, 0x20), mload(answer))
            }
        }
        if (answer.length > 0 && !abi.decode(answer, (bool))) revert TransferFailed();
    }

    function recover(bytes32 digest, bytes calldata signature) private pure returns (address signer) {
        if (signature.length != 65) revert InvalidSignature();
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > HALF_CURVE_ORDER) revert InvalidSignature();
        signer = ecrecover(digest, uint8(signature[64]), bytes32(signature[:32]), s);
        if (signer == address(0)) revert InvalidSignature();
    }

    function requireApproval(address signer, bytes32 digest, bytes calldata signature) private view {
        if (signer.code.length == 0) {
            if (recover(digest, signature) != signer) revert InvalidSignature();
            return;
        }
        (bool success, bytes memory answer) =
            signer.staticcall(abi.encodeCall(IWallet.isValidSignature, (digest, signature)));
        bool valid = success && answer.length >= 32
            && abi.decode(answer, (bytes32)) == bytes32(IWallet.isValidSignature.selector);
        if (!valid) revert InvalidSignature();
    }
}
