// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// The one function of Multicall3 that batched settlement uses, with its selector, arguments and results.
contract Multicall {
    struct Call {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    function aggregate3(Call[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 place = 0; place < calls.length; place++) {
            Call calldata each = calls[place];
            (bool success, bytes memory returnData) = each.target.call(each.callData);
            require(success || each.allowFailure, "a call has failed");
            results[place] = Result(success, returnData);
        }
    }
}
